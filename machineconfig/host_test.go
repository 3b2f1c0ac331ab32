package machineconfig_test

import (
	"errors"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/machineconfig"
)

// TestExpectedControlPlaneNodes shows R-MCO-1: the number follows the topology.
func TestExpectedControlPlaneNodes(t *testing.T) {
	want := map[configv1.TopologyMode][2]int{sr: {1, 0}, dual: {2, 0}, arbiter: {2, 1}, ha: {3, 0}, external: {0, 0}, empty: {3, 0}, unknown: {3, 0}}
	for _, mode := range allModes {
		masters, arbiters, err := machineconfig.ExpectedControlPlaneNodes(*clusterOf(mode))
		if got := [2]int{masters, arbiters}; got != want[mode] || err != nil {
			t.Errorf("%q: %v, %v, want %v", mode, got, err, want[mode])
		}
	}
}

func TestMaxUnavailable(t *testing.T) {
	for _, test := range []struct {
		pool, said string
		nodes      int
		want       int
	}{
		{"worker", "", 0, 1}, {"worker", "", 1, 1}, {"worker", "", 5, 1},
		{"worker", "0", 5, 1}, {"worker", "2", 5, 2}, {"worker", "9", 5, 5}, {"worker", "9", 1, 1},
		{"worker", "10%", 5, 1}, {"worker", "50%", 5, 2}, {"worker", "99%", 5, 4}, {"worker", "100%", 5, 5}, {"worker", "200%", 5, 5}, {"worker", "0%", 5, 1},
		{"infra", "3", 9, 3},
		{"master", "", 1, 1}, {"master", "", 2, 1}, {"master", "", 3, 1}, {"master", "", 5, 1},
		{"master", "3", 1, 1}, {"master", "3", 2, 1}, {"master", "3", 3, 1}, {"master", "3", 4, 1}, {"master", "3", 5, 2}, {"master", "100%", 7, 3},
		{"arbiter", "5", 1, 1}, {"arbiter", "5", 3, 1},
	} {
		p := pool(test.pool)
		if test.said != "" {
			p = pool(test.pool, most(test.said))
		}
		got, err := machineconfig.MaxUnavailable(&p, test.nodes)
		if err != nil || got != test.want {
			t.Errorf("pool %s with maxUnavailable %q and %d nodes: %d, %v, want %d", test.pool, test.said, test.nodes, got, err, test.want)
		}
	}
	for _, said := range []string{"many", "5.5%", "%", "-1", "-10%", "1/2"} {
		p := pool("worker", most(said))
		_, err := machineconfig.MaxUnavailable(&p, 5)
		if !errors.Is(err, machineconfig.ErrMaxUnavailable) {
			t.Errorf("maxUnavailable %q: %v", said, err)
			continue
		}
		for _, word := range []string{"MachineConfigPool worker", "spec.maxUnavailable", said} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%v: does not say %q", err, word)
			}
		}
	}
}

func TestMaxUnavailableOfNothing(t *testing.T) {
	worker := pool("worker")
	for name, call := range map[string]func() (int, error){
		"no pool":       func() (int, error) { return machineconfig.MaxUnavailable(nil, 3) },
		"-1 nodes":      func() (int, error) { return machineconfig.MaxUnavailable(&worker, -1) },
		"-1 nodes, nil": func() (int, error) { return machineconfig.MaxUnavailable(nil, -1) },
	} {
		if most, err := call(); most != 0 || !errors.Is(err, machineconfig.ErrInputs) {
			t.Errorf("%s: %d, %v", name, most, err)
		}
	}
}

// However many nodes there are and whatever the pool says, those of a control plane keep a majority; one and two nodes can update.
func TestControlPlaneKeepsItsMajority(t *testing.T) {
	for nodes := 1; nodes <= 9; nodes++ {
		for _, said := range []string{"0", "1", "4", "9", "34%", "100%"} {
			p := pool("master", most(said))
			away, err := machineconfig.MaxUnavailable(&p, nodes)
			if err != nil || away < 1 || (nodes > 2 && 2*(nodes-away) <= nodes) {
				t.Errorf("%d of %d nodes away at once with %q, %v", away, nodes, said, err)
			}
		}
	}
}
