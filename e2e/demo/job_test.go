// SPDX-License-Identifier: Apache-2.0

package demo_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/solonode/sno/e2e/demo"
	"github.com/solonode/sno/e2e/framework"
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
	binary := func(program programs.Program) string {
		path, err := programs.Build(t.Context(), program, t.Output())
		if err != nil {
			t.Fatal(err)
		}
		return path + " --kubeconfig={kubeconfig} --stock"
	}
	for _, test := range []struct {
		command string
		is      error
		want    []string
	}{
		{"ingress=" + binary(programs.IngressHost) + " --min-ready-seconds=1", nil, []string{"Given operator of ingress: "}},
		{"approver=" + binary(programs.ApproverHost), nil, []string{"Given operator of approver: ", "  ApproverTopologyPatchInForce="}},
		{"approver=sleep 100000", demo.ErrVerificationFailed, []string{"given operators that have written no Lease, status or operand: [approver]"}},
		{"ingress=sh -c 'echo broken; exit 4'", framework.ErrOperatorEnded, []string{"ingress, exit status 4 (sh -c 'echo broken; exit 4'); its log ends with:\nbroken"}},
	} {
		operators, err := framework.ReadOperators([]string{test.command}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = demo.Run(t.Context(), demo.Options{Scenario: "none-sno-day2-workers", Operators: operators, Once: true, Out: &out})
		if !errors.Is(err, test.is) {
			t.Errorf("%s: %v, want %v", test.command, err, test.is)
		}
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is missing in:\n%s", test.command, want, out.String())
			}
		}
	}
}
