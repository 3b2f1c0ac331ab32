// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/testcluster/scenario"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	master := place{Pod: "a", Node: "master-0", Pool: "master"}
	worker := place{Pod: "b", Node: "worker-0", Pool: "worker"}
	other := place{Pod: "c", Node: "worker-1", Pool: "worker"}
	pinned := scenario.Scenario{Pool: scenario.PoolMaster, Replicas: 1}
	spread := scenario.Scenario{Pool: scenario.PoolWorker, Replicas: 2}
	for _, test := range []struct {
		name     string
		scenario scenario.Scenario
		places   []place
		held     bool
	}{
		{"pinned", pinned, []place{master}, true},
		{"floated", pinned, []place{worker}, false},
		{"one too many", pinned, []place{master, worker}, false},
		{"none", pinned, nil, false},
		{"spread", spread, []place{worker, other}, true},
		{"spread over a schedulable control plane", spread, []place{worker, master}, true},
		{"one too few", spread, []place{worker}, false},
		{"both on one node", spread, []place{worker, {Pod: "d", Node: "worker-0", Pool: "worker"}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := check(test.scenario, test.places)
			if (err == nil) != test.held || (err != nil && !errors.Is(err, ErrVerificationFailed)) {
				t.Errorf("got %v, want held %v", err, test.held)
			}
		})
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	terminal{out: &out}.table([]string{"NAME", "WHERE", ""}, [][]string{{"a", "master-0", "ok"}, {"longer", "m", ""}})
	want := "  NAME    WHERE\n  a       master-0  ok\n  longer  m\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	out.Reset()
	coloured := terminal{out: &out, colour: true}
	coloured.columns([]string{"A", "B"}, []string{"xx", ""}).row(coloured.paint(red, "x"), "y")
	if want := "  " + dim + "A   B" + plain + "\n  " + red + "x" + plain + "   y\n"; out.String() != want {
		t.Errorf("colours count as width: got %q, want %q", out.String(), want)
	}
}
