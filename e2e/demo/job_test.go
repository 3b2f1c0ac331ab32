// SPDX-License-Identifier: Apache-2.0

package demo_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/solonode/sno/e2e/demo"
	"github.com/solonode/sno/e2e/harness"
	"github.com/solonode/sno/e2e/programs"
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

// A given operator is a host of the main job, and one that ends is an error at once.
func TestOperators(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts clusters, as make run does; make proof runs it")
	}
	t.Parallel()
	binary, err := programs.Build(t.Context(), programs.IngressHost, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		command string
		ends    error
		want    string
	}{
		{binary + " --kubeconfig={kubeconfig} --stock --min-ready-seconds=1", nil, "Given operator of ingress: " + binary},
		{"sh -c 'echo broken; exit 4'", harness.ErrOperatorEnded, "ingress, exit status 4 (sh -c 'echo broken; exit 4'); its log ends with:\nbroken"},
	} {
		operators, err := harness.ReadOperators([]string{"ingress=" + test.command}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = demo.Run(t.Context(), demo.Options{Scenario: "none-sno-day2-workers", Operators: operators, Once: true, Out: &out})
		if !errors.Is(err, test.ends) || errors.Is(err, demo.ErrVerificationFailed) || !strings.Contains(out.String(), test.want) {
			t.Errorf("%s: %v, wanted %v and %q in:\n%s", test.command, err, test.ends, test.want, out.String())
		}
	}
}
