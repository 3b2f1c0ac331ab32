package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestWaitForStable asks a cluster that is not OpenShift yet: no nodes, no operators.
func TestWaitForStable(t *testing.T) {
	kubeconfig := shared.Server(t).Kubeconfig(t, "patient", "system:masters")
	arguments := []string{"wait-for-stable", "--kubeconfig", kubeconfig, "--for=0", "--timeout=1ms"}

	got := run(t, arguments...)
	if got.code != 1 {
		t.Errorf("exit code %d, want 1", got.code)
	}
	for _, line := range []string{"OBJECT", "Node ", "there is none yet"} {
		if !strings.Contains(got.out, line) {
			t.Errorf("standard output does not say %q:\n%s", line, got.out)
		}
	}
	if !strings.Contains(got.err, "error: the cluster is not stable after ") {
		t.Errorf("standard error:\n%s", got.err)
	}

	got = run(t, append(arguments, "-o", "json")...)
	var answer struct {
		Kind   string
		Stable bool
		Moving []struct{ Object, WaitsFor, Since string }
	}
	if err := json.Unmarshal([]byte(got.out), &answer); err != nil {
		t.Fatalf("%v:\n%s", err, got.out)
	}
	if got.code != 1 || answer.Kind != "Stability" || answer.Stable || len(answer.Moving) == 0 || answer.Moving[0].Since == "" {
		t.Errorf("exit code %d:\n%s", got.code, got.out)
	}
}

func TestWaitForStableRefusesFlags(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"more quiet than time":  {[]string{"--for=2h", "--timeout=1h"}, "2h0m0s of quiet do not fit into a limit of 1h0m0s"},
		"no time":               {[]string{"--timeout=0"}, "no time may be negative"},
		"unknown output format": {[]string{"-o", "table"}, `unknown output format "table"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, append([]string{"wait-for-stable"}, test.arguments...)...)
			if got.code != 1 || got.out != "" || !strings.Contains(got.err, test.want) {
				t.Errorf("exit code %d, standard output %q, standard error %q; want 1 and %q", got.code, got.out, got.err, test.want)
			}
		})
	}
}

// TestWaitForStableWithoutCluster says at once that nothing answers, and waits all the same: a single node's API server may be restarting.
func TestWaitForStableWithoutCluster(t *testing.T) {
	got := run(t, "wait-for-stable", "--server=https://127.0.0.1:1", "--for=0", "--timeout=1ms")
	if got.code != 1 || !strings.Contains(got.out, "not known: ") || !strings.Contains(got.out, "connection refused") {
		t.Errorf("exit code %d:\n%s\n%s", got.code, got.out, got.err)
	}
}
