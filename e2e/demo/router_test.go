// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"io"
	"strings"
	"testing"

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

func TestUnknownScenario(t *testing.T) {
	t.Parallel()
	err := Run(t.Context(), Options{Scenario: "none-such", Once: true, Out: io.Discard})
	if !errors.Is(err, scenario.ErrUnknown) || !strings.Contains(err.Error(), "none-sno-day2-workers") {
		t.Errorf("got %v, want ErrUnknown and the known names", err)
	}
}
