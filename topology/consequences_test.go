// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solonode/sno/topology"
)

// TestGoverning shows R-TOP-8, R-TOP-4 and R-TOP-3.
func TestGoverning(t *testing.T) {
	const none, full = topology.HighAvailabilityNone, topology.HighAvailabilityFull
	for _, test := range []struct {
		controlPlane, infra              configv1.TopologyMode
		wantControlPlane, wantWorkerPool configv1.TopologyMode
		wantMode                         topology.HighAvailabilityMode
	}{
		{ha, ha, ha, ha, full},
		{ha, sr, ha, sr, full},
		{arbiter, ha, arbiter, ha, full},
		{arbiter, sr, arbiter, sr, full},
		{sr, ha, sr, ha, none}, // workers do not matter
		{sr, sr, sr, sr, none},
		{dual, ha, dual, ha, full},
		{dual, sr, dual, sr, full},
		{external, ha, ha, ha, full},
		{external, sr, sr, sr, none},
		{external, empty, ha, ha, full},
		{external, unknown, ha, ha, full},
		{external, external, external, external, full},
		{empty, empty, ha, ha, full},
		{empty, sr, ha, sr, full},
		{unknown, unknown, ha, ha, full},
		{unknown, sr, ha, sr, full},
		{sr, empty, sr, ha, none},
		{sr, unknown, sr, ha, none},
	} {
		cluster := clusterOf(test.controlPlane, test.infra)
		controlPlanePool := topology.ControlPlanePool
		if test.controlPlane == external {
			controlPlanePool = topology.WorkerPool
		}
		for _, where := range []struct {
			pool, runsIn topology.Pool
			want         configv1.TopologyMode
		}{
			{topology.ControlPlanePool, controlPlanePool, test.wantControlPlane},
			{topology.WorkerPool, topology.WorkerPool, test.wantWorkerPool},
			{"infra", topology.WorkerPool, test.wantWorkerPool},
			{"", topology.WorkerPool, test.wantWorkerPool},
		} {
			if mode, pool := cluster.Governing(where.pool), cluster.PoolFor(where.pool); mode != where.want || pool != where.runsIn {
				t.Errorf("control plane %q, infrastructure %q, pool %q: %s in %s, want %s in %s",
					test.controlPlane, test.infra, where.pool, mode, pool, where.want, where.runsIn)
			}
		}
		if got := cluster.HighAvailability(); got != test.wantMode {
			t.Errorf("control plane %q, infrastructure %q: %s, want %s", test.controlPlane, test.infra, got, test.wantMode)
		}
	}
	var zero topology.Cluster
	if zero.Governing(topology.ControlPlanePool) != ha || zero.Governing(topology.WorkerPool) != ha || zero.HighAvailability() != full {
		t.Error("the zero Cluster does not act as HighlyAvailable")
	}
}

// TestConsequences shows R-TOP-2, R-SNO-11, R-OPS-2, R-SNO-8 and R-OPS-4 in all modes.
func TestConsequences(t *testing.T) {
	type consequences struct {
		Replicas          int32
		Spread            bool
		Shared, Exclusive topology.Rollout
		Budget            intstr.IntOrString
		BudgetNeeded      bool
		LeaderElection    topology.LeaderElectionClass
	}
	rollout := func(maxUnavailable, maxSurge int32) topology.Rollout {
		return topology.Rollout{MaxUnavailable: intstr.FromInt32(maxUnavailable), MaxSurge: intstr.FromInt32(maxSurge)}
	}
	elections := func(lease, renew, retry time.Duration) topology.LeaderElectionClass {
		return topology.LeaderElectionClass{LeaseDuration: lease * time.Second, RenewDeadline: renew * time.Second, RetryPeriod: retry * time.Second}
	}
	for _, mode := range allModes {
		want := consequences{
			Replicas: 2, Spread: true, Shared: rollout(1, 1), Exclusive: rollout(1, 0),
			Budget: intstr.FromInt32(1), BudgetNeeded: true, LeaderElection: elections(137, 107, 26),
		}
		if mode == sr {
			want = consequences{Replicas: 1, Shared: rollout(0, 1), Exclusive: rollout(1, 0), LeaderElection: elections(270, 240, 60)}
		}
		budget, needed := topology.DisruptionBudget(mode)
		got := consequences{
			Replicas:       topology.Replicas(mode),
			Spread:         topology.SpreadRequired(mode),
			Shared:         topology.RolloutStrategy(mode, false),
			Exclusive:      topology.RolloutStrategy(mode, true),
			Budget:         budget,
			BudgetNeeded:   needed,
			LeaderElection: topology.LeaderElection(mode),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("mode %q (-want +got):\n%s", mode, diff)
		}
	}
}

// In a model of a rolling update, all strategies finish on as few nodes as possible (R-SNO-2, R-OPS-1).
func TestRolloutsFinish(t *testing.T) {
	for _, mode := range allModes {
		for _, exclusive := range []bool{false, true} {
			replicas := int(topology.Replicas(mode))
			separate := exclusive || topology.SpreadRequired(mode)
			for nodes := replicas; nodes <= replicas+2; nodes++ {
				strategy := topology.RolloutStrategy(mode, exclusive)
				if !finishes(nodes, replicas, strategy.MaxUnavailable.IntValue(), strategy.MaxSurge.IntValue(), separate) {
					t.Errorf("mode %q, exclusive %v, %d nodes: the rollout with %+v does not finish", mode, exclusive, nodes, strategy)
				}
			}
		}
	}

	// Negative controls: measured deadlocks (U-TOP-13).
	for _, stuck := range []struct {
		name                                      string
		nodes, replicas, maxUnavailable, maxSurge int
		separate                                  bool
	}{
		{"one node, required anti-affinity, 25 %/25 % of one pod", 1, 1, 0, 1, true},
		{"two nodes, required anti-affinity, surge only", 2, 2, 0, 1, true},
		{"neither number", 1, 1, 0, 0, false},
		{"two pods that need two nodes, on one", 1, 2, 1, 1, true},
	} {
		if finishes(stuck.nodes, stuck.replicas, stuck.maxUnavailable, stuck.maxSurge, stuck.separate) {
			t.Errorf("the rollout finishes in the model: %s", stuck.name)
		}
	}
}

// finishes reports whether a rolling update from replicas old pods, of which as many run as fit, to new pods finishes.
func finishes(nodes, replicas, maxUnavailable, maxSurge int, separate bool) bool {
	room := nodes
	if !separate {
		room = nodes * replicas * 2
	}
	oldRunning := min(replicas, room)
	oldPending := replicas - oldRunning
	newPods, newRunning := 0, 0
	for {
		before := [4]int{oldRunning, oldPending, newPods, newRunning}
		newPods = min(replicas, replicas+maxSurge-oldRunning-oldPending)
		newRunning = min(newPods, room-oldRunning)
		oldPending = 0
		// An old pod may end while enough pods run.
		oldRunning -= max(0, min(oldRunning, oldRunning+newRunning-(replicas-maxUnavailable)))
		if newRunning == replicas && oldRunning == 0 {
			return true
		}
		if before == [4]int{oldRunning, oldPending, newPods, newRunning} {
			return false
		}
	}
}

// TestPlacementOf shows R-SNO-1.
func TestPlacementOf(t *testing.T) {
	const master, workers = "node-role.kubernetes.io/master", "node-role.kubernetes.io/worker"
	for pool, test := range map[topology.Pool]struct {
		role     string
		tolerate []string
	}{
		topology.ControlPlanePool: {master, []string{master, "node-role.kubernetes.io/control-plane"}},
		topology.WorkerPool:       {workers, nil},
		"infra":                   {workers, nil},
		"":                        {workers, nil},
	} {
		placement := topology.PlacementOf(pool)
		for range 2 { // results are copies
			selector, tolerations := placement.NodeSelector(), placement.Tolerations()
			if diff := cmp.Diff(map[string]string{test.role: ""}, selector); diff != "" {
				t.Errorf("pool %q, selector (-want +got):\n%s", pool, diff)
			}
			var want []topology.Toleration
			for _, key := range test.tolerate {
				want = append(want, topology.Toleration{Key: key, Operator: "Exists", Effect: "NoSchedule"})
			}
			if diff := cmp.Diff(want, tolerations); diff != "" {
				t.Errorf("pool %q, tolerations (-want +got):\n%s", pool, diff)
			}
			selector[test.role] = "changed"
			for i := range tolerations {
				tolerations[i].Key = "changed"
			}
		}
		if placement != topology.PlacementOf(pool) {
			t.Errorf("pool %q: two equal placements differ", pool)
		}
	}
}
