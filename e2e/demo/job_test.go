// SPDX-License-Identifier: Apache-2.0

package demo_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/solonode/sno/e2e/demo"
	"github.com/solonode/sno/testcluster/scenario"
)

// Package proof runs the main job on every scenario.
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
		t.Errorf("no result, or colours although it is not a terminal:\n%s", text)
	}
}

func TestUnknownScenario(t *testing.T) {
	t.Parallel()
	err := demo.Run(t.Context(), demo.Options{Scenario: "none-such", Once: true, Out: &bytes.Buffer{}})
	if !errors.Is(err, scenario.ErrUnknown) || !strings.Contains(err.Error(), "none-sno-day2-workers") {
		t.Errorf("got %v, want ErrUnknown and the known names", err)
	}
}
