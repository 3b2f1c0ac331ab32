package demo_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/solonode/sno/e2e/demo"
	"github.com/solonode/sno/testcluster/scenario"
)

// TestRun does the main job on the scenario that it is for; package proof does it on every one.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts clusters, as make run does; make proof runs it")
	}
	t.Parallel()
	var out bytes.Buffer
	if err := demo.Run(t.Context(), demo.Options{Scenario: "none-sno-day2-workers", Once: true, Out: &out}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if text := out.String(); !strings.Contains(text, "The proof held.") || strings.Contains(text, "\x1b[") {
		t.Errorf("output without its verdict, or with colours although it is no terminal:\n%s", text)
	}
}

func TestUnknownScenario(t *testing.T) {
	t.Parallel()
	err := demo.Run(t.Context(), demo.Options{Scenario: "none-such", Once: true, Out: &bytes.Buffer{}})
	if !errors.Is(err, scenario.ErrUnknown) || !strings.Contains(err.Error(), "none-sno-day2-workers") {
		t.Errorf("got %v, want ErrUnknown and the names that there are", err)
	}
}
