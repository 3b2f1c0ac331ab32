package topology_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solonode/sno/topology"
)

// TestGoverning shows R-TOP-8 and R-TOP-4: pods have the topology of the nodes that they run on.
func TestGoverning(t *testing.T) {
	for _, test := range []struct {
		controlPlane, infra              configv1.TopologyMode
		wantControlPlane, wantWorkerPool configv1.TopologyMode
	}{
		{ha, sr, ha, sr},
		{arbiter, sr, arbiter, sr},
		{sr, ha, sr, ha},
		{sr, sr, sr, sr},
		{dual, ha, dual, ha},
		{external, ha, ha, ha},
		{external, sr, sr, sr},
		{external, empty, ha, ha},
		{external, external, external, external},
		{empty, sr, ha, sr},
		{unknown, sr, ha, sr},
		{sr, empty, sr, ha},
		{sr, unknown, sr, ha},
	} {
		cluster := topology.Cluster{ControlPlane: topology.ReadingOf(test.controlPlane), Infrastructure: topology.ReadingOf(test.infra)}
		for _, pool := range []struct {
			pool topology.Pool
			want configv1.TopologyMode
		}{
			{topology.ControlPlanePool, test.wantControlPlane},
			{topology.WorkerPool, test.wantWorkerPool},
			{"infra", test.wantWorkerPool},
			{"", test.wantWorkerPool},
		} {
			if got := cluster.Governing(pool.pool); got != pool.want {
				t.Errorf("control plane %q, infrastructure %q, pool %q: %s, want %s", test.controlPlane, test.infra, pool.pool, got, pool.want)
			}
		}
	}
	if got := (topology.Cluster{}).Governing(topology.ControlPlanePool); got != ha {
		t.Errorf("zero Cluster, control plane: %q, want %s", got, ha)
	}
	if got := (topology.Cluster{}).Governing(topology.WorkerPool); got != ha {
		t.Errorf("zero Cluster, workers: %q, want %s", got, ha)
	}
}

func TestPoolFor(t *testing.T) {
	for _, mode := range allModes {
		cluster := topology.Cluster{ControlPlane: topology.ReadingOf(mode)}
		want := topology.ControlPlanePool
		if mode == external {
			want = topology.WorkerPool
		}
		if got := cluster.PoolFor(topology.ControlPlanePool); got != want {
			t.Errorf("%q: PoolFor(master) = %s, want %s", mode, got, want)
		}
		for _, pool := range []topology.Pool{topology.WorkerPool, "infra", ""} {
			if got := cluster.PoolFor(pool); got != topology.WorkerPool {
				t.Errorf("%q: PoolFor(%q) = %s, want worker", mode, pool, got)
			}
		}
	}
}

// TestConsequences shows R-TOP-2 and R-SNO-11 in all modes, and R-OPS-2 and R-SNO-8: whatever is not SingleReplica keeps its redundancy.
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
	single := consequences{
		Replicas:  1,
		Shared:    rollout(0, 1),
		Exclusive: rollout(1, 0),
		LeaderElection: topology.LeaderElectionClass{
			LeaseDuration: 270 * time.Second, RenewDeadline: 240 * time.Second, RetryPeriod: 60 * time.Second,
		},
	}
	redundant := consequences{
		Replicas:     2,
		Spread:       true,
		Shared:       rollout(1, 1),
		Exclusive:    rollout(1, 0),
		Budget:       intstr.FromInt32(1),
		BudgetNeeded: true,
		LeaderElection: topology.LeaderElectionClass{
			LeaseDuration: 137 * time.Second, RenewDeadline: 107 * time.Second, RetryPeriod: 26 * time.Second,
		},
	}
	want := map[configv1.TopologyMode]consequences{
		ha: redundant, arbiter: redundant, sr: single, dual: redundant, external: redundant, empty: redundant, unknown: redundant,
	}
	for _, mode := range allModes {
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
		if diff := cmp.Diff(want[mode], got); diff != "" {
			t.Errorf("mode %q (-want +got):\n%s", mode, diff)
		}
	}
}

// A model of a rolling update: it knows nodes, anti-affinity, ports and the two numbers, and nothing of topologies. Every
// strategy must get all new pods running on as few nodes as the topology may have (R-SNO-2, R-OPS-1).
func TestRolloutsFinish(t *testing.T) {
	for _, mode := range allModes {
		for _, exclusive := range []bool{false, true} {
			replicas := int(topology.Replicas(mode))
			separate := exclusive || topology.SpreadRequired(mode)
			for nodes := replicas; nodes <= replicas+2; nodes++ {
				strategy := topology.RolloutStrategy(mode, exclusive)
				if strategy.MaxUnavailable.Type != intstr.Int || strategy.MaxSurge.Type != intstr.Int {
					t.Fatalf("mode %q: percentages: %+v", mode, strategy)
				}
				if !rolls(nodes, replicas, strategy.MaxUnavailable.IntValue(), strategy.MaxSurge.IntValue(), separate) {
					t.Errorf("mode %q, exclusive %v, %d nodes: the rollout with %+v does not finish", mode, exclusive, nodes, strategy)
				}
			}
		}
	}

	// The model must be able to say no: these are the deadlocks that were measured (U-TOP-13).
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
		if rolls(stuck.nodes, stuck.replicas, stuck.maxUnavailable, stuck.maxSurge, stuck.separate) {
			t.Errorf("the model let this finish: %s", stuck.name)
		}
	}
}

// rolls says whether a rolling update from replicas old pods, as many of them running as fit, to replicas new pods finishes.
func rolls(nodes, replicas, maxUnavailable, maxSurge int, separate bool) bool {
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
		// An old pod may go as long as enough pods run.
		oldRunning -= max(0, min(oldRunning, oldRunning+newRunning-(replicas-maxUnavailable)))
		if newRunning == replicas && oldRunning == 0 {
			return true
		}
		if before == [4]int{oldRunning, oldPending, newPods, newRunning} {
			return false
		}
	}
}

// TestPlacementOf shows R-SNO-1: the selector of the control plane comes with the tolerations of its taints.
func TestPlacementOf(t *testing.T) {
	toleration := func(key string) topology.Toleration {
		return topology.Toleration{Key: key, Operator: "Exists", Effect: "NoSchedule"}
	}
	for _, test := range []struct {
		pool        topology.Pool
		selector    map[string]string
		tolerations []topology.Toleration
	}{
		{
			pool:     topology.ControlPlanePool,
			selector: map[string]string{"node-role.kubernetes.io/master": ""},
			tolerations: []topology.Toleration{
				toleration("node-role.kubernetes.io/master"),
				toleration("node-role.kubernetes.io/control-plane"),
			},
		},
		{pool: topology.WorkerPool, selector: map[string]string{"node-role.kubernetes.io/worker": ""}},
		{pool: "infra", selector: map[string]string{"node-role.kubernetes.io/worker": ""}},
		{pool: "", selector: map[string]string{"node-role.kubernetes.io/worker": ""}},
	} {
		placement := topology.PlacementOf(test.pool)
		if diff := cmp.Diff(test.selector, placement.NodeSelector()); diff != "" {
			t.Errorf("pool %q, selector (-want +got):\n%s", test.pool, diff)
		}
		if diff := cmp.Diff(test.tolerations, placement.Tolerations()); diff != "" {
			t.Errorf("pool %q, tolerations (-want +got):\n%s", test.pool, diff)
		}
		if placement != topology.PlacementOf(test.pool) {
			t.Errorf("pool %q: two equal placements differ", test.pool)
		}
	}
}

func TestPlacementCopiesAreFresh(t *testing.T) {
	placement := topology.PlacementOf(topology.ControlPlanePool)
	selector, tolerations := placement.NodeSelector(), placement.Tolerations()
	selector["node-role.kubernetes.io/master"] = "changed"
	tolerations[0].Key = "changed"
	if got := placement.NodeSelector()["node-role.kubernetes.io/master"]; got != "" {
		t.Errorf("a caller's change reached the selector: %q", got)
	}
	if got := placement.Tolerations()[0].Key; got != "node-role.kubernetes.io/master" {
		t.Errorf("a caller's change reached the tolerations: %q", got)
	}
}

// The numbers that library-go derives from its durations (U-TOP-10): with one API server more than the two minutes of R-OPS-4.
func TestLeaderElectionTolerates(t *testing.T) {
	for _, test := range []struct {
		mode                configv1.TopologyMode
		outage, acquisition time.Duration
	}{
		{ha, 78 * time.Second, 163 * time.Second},
		{sr, 180 * time.Second, 330 * time.Second},
	} {
		class := topology.LeaderElection(test.mode)
		if got := class.ToleratedOutage(); got != test.outage {
			t.Errorf("%s: tolerates %s, want %s", test.mode, got, test.outage)
		}
		if got := class.WorstAcquisition(); got != test.acquisition {
			t.Errorf("%s: acquires in %s, want %s", test.mode, got, test.acquisition)
		}
		if skew := class.LeaseDuration - class.RenewDeadline; skew != 30*time.Second {
			t.Errorf("%s: clock skew %s, want 30s", test.mode, skew)
		}
	}
	if got := (topology.LeaderElectionClass{}).ToleratedOutage(); got != 0 {
		t.Errorf("zero class tolerates %s, want 0", got)
	}
	if got := (topology.LeaderElectionClass{RenewDeadline: 5 * time.Second, RetryPeriod: 10 * time.Second}).ToleratedOutage(); got != 0 {
		t.Errorf("a class without a second try tolerates %s, want 0", got)
	}
}
