// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"errors"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/internal/fixture"
	"github.com/solonode/sno/topology/topologytest"
)

// TestExpectedControlPlaneNodes shows R-MCO-1.
func TestExpectedControlPlaneNodes(t *testing.T) {
	want := map[configv1.TopologyMode][2]int{topologytest.SR: {1, 0}, topologytest.Dual: {2, 0}, topologytest.Arbiter: {2, 1}, topologytest.HA: {3, 0}, topologytest.External: {0, 0}, topologytest.Empty: {3, 0}, topologytest.Unknown: {3, 0}}
	for _, mode := range allModes {
		masters, arbiters, err := machineconfig.ExpectedControlPlaneNodes(*fixture.ClusterOf(mode))
		if got := [2]int{masters, arbiters}; got != want[mode] || err != nil {
			t.Errorf("%q: %v, %v, want %v", mode, got, err, want[mode])
		}
	}
}

func TestMaxUnavailable(t *testing.T) {
	for _, test := range []struct {
		pool, maxUnavailable string
		nodes                int
		want                 int
	}{
		{"worker", "", 0, 1}, {"worker", "", 1, 1}, {"worker", "", 5, 1},
		{"worker", "0", 5, 1}, {"worker", "2", 5, 2}, {"worker", "9", 5, 5}, {"worker", "9", 1, 1},
		{"worker", "10%", 5, 1}, {"worker", "50%", 5, 2}, {"worker", "99%", 5, 4}, {"worker", "100%", 5, 5}, {"worker", "200%", 5, 5}, {"worker", "0%", 5, 1},
		{"infra", "3", 9, 3},
		{"master", "", 1, 1}, {"master", "", 2, 1}, {"master", "", 3, 1}, {"master", "", 5, 1},
		{"master", "3", 1, 1}, {"master", "3", 2, 1}, {"master", "3", 3, 1}, {"master", "3", 4, 1}, {"master", "3", 5, 2}, {"master", "100%", 7, 3},
		{"arbiter", "5", 1, 1}, {"arbiter", "5", 3, 1},
	} {
		p := fixture.Pool(test.pool, withMaxUnavailable(test.maxUnavailable))
		got, err := machineconfig.MaxUnavailable(&p, test.nodes)
		if err != nil || got != test.want {
			t.Errorf("pool %s with maxUnavailable %q and %d nodes: %d, %v, want %d", test.pool, test.maxUnavailable, test.nodes, got, err, test.want)
		}
	}
	for _, value := range []string{"many", "5.5%", "%", "-1", "-10%", "1/2"} {
		p := fixture.Pool("worker", withMaxUnavailable(value))
		_, err := machineconfig.MaxUnavailable(&p, 5)
		if !errors.Is(err, machineconfig.ErrMaxUnavailable) {
			t.Errorf("maxUnavailable %q: %v", value, err)
			continue
		}
		for _, word := range []string{"MachineConfigPool worker", "spec.maxUnavailable", value} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%v: lacks %q", err, word)
			}
		}
	}
	worker := fixture.Pool("worker")
	for p, nodes := range map[*mcfgv1.MachineConfigPool]int{nil: 3, &worker: -1} {
		if n, err := machineconfig.MaxUnavailable(p, nodes); n != 0 || !errors.Is(err, machineconfig.ErrInputs) {
			t.Errorf("%v, %d nodes: %d, %v", p, nodes, n, err)
		}
	}
}

func TestControlPlaneKeepsMajority(t *testing.T) {
	for nodes := 1; nodes <= 9; nodes++ {
		for _, value := range []string{"0", "1", "4", "9", "34%", "100%"} {
			p := fixture.Pool("master", withMaxUnavailable(value))
			unavailable, err := machineconfig.MaxUnavailable(&p, nodes)
			if err != nil || unavailable < 1 || (nodes > 2 && 2*(nodes-unavailable) <= nodes) {
				t.Errorf("%d of %d nodes unavailable at once with %q, %v", unavailable, nodes, value, err)
			}
		}
	}
}
