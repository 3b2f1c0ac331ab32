// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/cli/rehearsal"
)

// A diff of a Secret contains changes without values.
func TestSecretsAreMasked(t *testing.T) {
	secret := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"},
			"data": map[string]any{"key": value, "same": "x", "other" + value: "x"}, "stringData": "of a wrong form",
		}}
	}
	changed, err := unified(rehearsal.Write{Before: secret("before"), After: secret("after")})
	if err != nil {
		t.Fatal(err)
	}
	created, err := unified(rehearsal.Write{After: secret("after")})
	if err != nil {
		t.Fatal(err)
	}
	for text, contained := range map[string]bool{
		"key: before": false, "key: after": false, "wrong form": false, "--- live/secret/s\n+++ merged/secret/s\n": true,
		"-  key: '*** (before)'": true, "+  key: '*** (after)'": true, "   same: '***'": true, "-  otherbefore: '***'": true, "+  otherafter: '***'": true,
	} {
		if strings.Contains(changed, text) != contained {
			t.Errorf("%q contained: %t, want %t in\n%s", text, !contained, contained, changed)
		}
	}
	if !strings.Contains(created, "@@ -0,0 ") || strings.Contains(created, "key: after") {
		t.Errorf("a created Secret:\n%s", created)
	}
}
