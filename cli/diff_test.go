package cli

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/cli/rehearsal"
)

// No value of a Secret is shown, but that it changes is.
func TestSecretsAreMasked(t *testing.T) {
	secret := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"},
			"data": map[string]any{"key": value, "same": "x", "other" + value: "x"}, "stringData": "of a wrong form",
		}}
	}
	text, err := unified(rehearsal.Write{Before: secret("before"), After: secret("after")})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "key: before") || strings.Contains(text, "key: after") || strings.Contains(text, "wrong form") {
		t.Errorf("a value is shown:\n%s", text)
	}
	if !strings.Contains(text, "-  key: '*** (before)'") || !strings.Contains(text, "+  key: '*** (after)'") || !strings.Contains(text, "   same: '***'") {
		t.Errorf("what changes is not shown:\n%s", text)
	}
	if !strings.Contains(text, "-  otherbefore: '***'") || !strings.Contains(text, "+  otherafter: '***'") {
		t.Errorf("the names are not shown:\n%s", text)
	}
	if !strings.HasPrefix(text, "--- live/secret/s\n+++ merged/secret/s\n") {
		t.Errorf("the head is\n%s", text)
	}
	if text, err := unified(rehearsal.Write{After: secret("x")}); err != nil || !strings.Contains(text, "@@ -0,0 ") {
		t.Errorf("an object that is made: %v\n%s", err, text)
	}
}
