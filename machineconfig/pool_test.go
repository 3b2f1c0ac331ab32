package machineconfig_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/machineconfig"
)

func TestPoolOf(t *testing.T) {
	pools := []mcfgv1.MachineConfigPool{pool("worker"), pool("infra"), pool("arbiter"), pool("master")}
	for _, test := range []struct {
		roles []string
		want  string
	}{
		{[]string{"master"}, "master"}, {[]string{"worker"}, "worker"}, {[]string{"arbiter"}, "arbiter"},
		{[]string{"master", "worker"}, "master"}, {[]string{"master", "infra", "worker"}, "master"}, {[]string{"infra", "worker"}, "infra"},
		{[]string{"arbiter", "worker"}, "arbiter"}, {[]string{"infra", "arbiter"}, "infra"}, {nil, ""},
	} {
		n := node("n", test.roles...)
		got, err := machineconfig.PoolOf(&n, pointers(pools))
		name := ""
		if got != nil {
			name = got.Name
		}
		if err != nil || name != test.want {
			t.Errorf("%v: pool %q, %v, want %q", test.roles, name, err, test.want)
		}
	}
	n := node("n", "infra", "gpu", "worker")
	if _, err := machineconfig.PoolOf(&n, pointers(append(pools, pool("gpu")))); !errors.Is(err, machineconfig.ErrPools) {
		t.Errorf("two pools: %v", err)
	}
	bad := pool("gpu", func(p *mcfgv1.MachineConfigPool) {
		p.Spec.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Maybe"}}}
	})
	if _, err := machineconfig.PoolOf(&n, pointers(append(pools, bad))); !errors.Is(err, machineconfig.ErrPools) || !strings.Contains(err.Error(), "gpu") {
		t.Errorf("bad selector: %v", err)
	}
	none := pool("gpu", func(p *mcfgv1.MachineConfigPool) { p.Spec.NodeSelector = nil })
	if got, err := machineconfig.PoolOf(&n, []*mcfgv1.MachineConfigPool{&none}); got != nil || err != nil {
		t.Errorf("no selector: %v, %v", got, err)
	}
}

// names are given as one word, as in "a b c".
func TestMayStart(t *testing.T) {
	stockPools := func(masters, workers, arbiters mcfgv1.MachineConfigPool) []mcfgv1.MachineConfigPool {
		return []mcfgv1.MachineConfigPool{masters, workers, arbiters}
	}
	pools := stockPools(pool("master"), pool("worker"), pool("arbiter"))
	threeMasters := []corev1.Node{node("m1", "master"), node("m2", "master"), node("m3", "master")}
	fourWorkers := []corev1.Node{node("w1", "worker"), node("w2", "worker"), node("w3", "worker"), node("w4", "worker")}
	withArbiter := []corev1.Node{node("m1", "master"), node("m2", "master"), node("a1", "arbiter")}
	const pause, others, masters = machineconfig.HeldByPause, machineconfig.HeldByOthers, machineconfig.HeldByMasters
	const noPool, onWindows, bad = machineconfig.HeldByNoPool, machineconfig.HeldByWindows, machineconfig.HeldByBadInput
	reports := func(n corev1.Node, kind corev1.NodeConditionType, status corev1.ConditionStatus) corev1.Node {
		return reporting(n, map[corev1.NodeConditionType]corev1.ConditionStatus{corev1.NodeReady: corev1.ConditionTrue, kind: status})
	}
	share := stockPools(pool("master"), pool("worker", most("34%")), pool("arbiter"))
	fourWindows := []corev1.Node{windows(node("x1", "worker")), windows(node("x2", "worker")), windows(node("x3", "worker")), windows(node("x4", "worker"))}
	for _, test := range []struct {
		name            string
		mode            configv1.TopologyMode
		pools           []mcfgv1.MachineConfigPool
		nodes           []corev1.Node
		asking, leaving string
		start           string
		held            map[string]string
	}{
		{name: "the only node", mode: sr, pools: pools, nodes: threeMasters[:1], asking: "m1", start: "m1"},
		{name: "the only node, cordoned by a person", mode: sr, pools: pools, nodes: []corev1.Node{cordoned(threeMasters[0])}, asking: "m1", start: "m1"},
		{name: "both roles", mode: sr, pools: pools, nodes: []corev1.Node{node("m1", "master", "worker"), fourWorkers[0]}, asking: "m1 w1", start: "m1 w1"},
		{name: "three masters", mode: ha, pools: pools, nodes: threeMasters, asking: "m1 m2 m3", start: "m1", held: map[string]string{"m2": others, "m3": others}},
		{name: "three masters of which all may go", mode: ha, pools: stockPools(pool("master", most("100%")), pool("worker"), pool("arbiter")), nodes: threeMasters,
			asking: "m1 m2 m3", start: "m1", held: map[string]string{"m2": others, "m3": others}},
		{name: "a master is down", mode: ha, pools: pools, nodes: []corev1.Node{threeMasters[0], notReady(threeMasters[1]), threeMasters[2]}, asking: "m1", held: map[string]string{"m1": others}},
		{name: "the master that is down asks", mode: ha, pools: pools, nodes: []corev1.Node{threeMasters[0], notReady(threeMasters[1]), threeMasters[2]}, asking: "m1 m2",
			start: "m2", held: map[string]string{"m1": others}},
		{name: "two cordoned masters", mode: ha, pools: pools, nodes: []corev1.Node{cordoned(threeMasters[0]), cordoned(threeMasters[1]), threeMasters[2]}, asking: "m1 m2",
			start: "m1", held: map[string]string{"m2": others}},
		{name: "a person cordoned a master", mode: ha, pools: pools, nodes: []corev1.Node{threeMasters[0], cordoned(threeMasters[1]), threeMasters[2]}, asking: "m1", held: map[string]string{"m1": others}},
		{name: "the one that a person cordoned goes first", mode: ha, pools: pools, nodes: []corev1.Node{threeMasters[0], cordoned(threeMasters[1]), threeMasters[2]}, asking: "m1 m2",
			start: "m2", held: map[string]string{"m1": others}},
		{name: "a master is missing", mode: ha, pools: pools, nodes: threeMasters[:2], asking: "m1", held: map[string]string{"m1": others}},
		{name: "two masters", mode: dual, pools: pools, nodes: threeMasters[:2], asking: "m1 m2", start: "m1", held: map[string]string{"m2": others}},
		{name: "a master has leave", mode: ha, pools: pools, nodes: threeMasters, asking: "m1", leaving: "m3", held: map[string]string{"m1": others}},
		{name: "a master asks and has leave", mode: ha, pools: pools, nodes: threeMasters, asking: "m1 m3", leaving: "m3", held: map[string]string{"m1": others}},

		{name: "workers", mode: ha, pools: stockPools(pool("master"), pool("worker", most("50%")), pool("arbiter")), nodes: fourWorkers, asking: "w4 w3 w2 w1",
			start: "w1 w2", held: map[string]string{"w3": others, "w4": others}},
		{name: "workers, one has leave", mode: ha, pools: stockPools(pool("master"), pool("worker", most("2")), pool("arbiter")), nodes: fourWorkers, asking: "w1 w3 w4", leaving: "w2",
			start: "w1", held: map[string]string{"w3": others, "w4": others}},
		{name: "workers, one is not ready", mode: ha, pools: stockPools(pool("master"), pool("worker", most("2")), pool("arbiter")),
			nodes: []corev1.Node{fourWorkers[0], notReady(fourWorkers[1]), fourWorkers[2]}, asking: "w1 w3", start: "w1", held: map[string]string{"w3": others}},
		{name: "pools do not wait for each other", mode: ha, pools: pools, nodes: append(threeMasters[:3:3], fourWorkers...), asking: "m1 w1", start: "m1 w1"},

		{name: "paused", mode: sr, pools: stockPools(pool("master", paused), pool("worker"), pool("arbiter")), nodes: append(threeMasters[:1:1], fourWorkers...), asking: "m1 w1",
			start: "w1", held: map[string]string{"m1": pause}},
		{name: "arbiter after masters", mode: arbiter, pools: pools, nodes: withArbiter, asking: "a1 m2", start: "m2", held: map[string]string{"a1": masters}},
		{name: "arbiter alone", mode: arbiter, pools: pools, nodes: withArbiter, asking: "a1", start: "a1"},
		{name: "arbiter waits for a master that is away", mode: arbiter, pools: pools, nodes: withArbiter, asking: "a1", leaving: "m1", held: map[string]string{"a1": others}},
		{name: "master waits for an arbiter that is away", mode: arbiter, pools: pools, nodes: withArbiter, asking: "m1", leaving: "a1", held: map[string]string{"m1": others}},
		{name: "arbiter waits for none that is paused", mode: arbiter, pools: stockPools(pool("master", paused), pool("worker"), pool("arbiter")), nodes: withArbiter, asking: "a1 m1",
			start: "a1", held: map[string]string{"m1": pause}},
		{name: "arbiter waits for one that is paused and down", mode: arbiter, pools: stockPools(pool("master", paused), pool("worker"), pool("arbiter")),
			nodes: []corev1.Node{notReady(node("m1", "master")), node("m2", "master"), node("a1", "arbiter")}, asking: "a1 m1", held: map[string]string{"a1": others, "m1": pause}},
		{name: "masters wait for an arbiter that is down and asks", mode: arbiter, pools: pools,
			nodes: []corev1.Node{node("m1", "master"), node("m2", "master"), notReady(node("a1", "arbiter"))}, asking: "a1 m1", held: map[string]string{"a1": masters, "m1": others}},

		{name: "in no pool", mode: ha, pools: pools, nodes: []corev1.Node{node("x")}, asking: "x", held: map[string]string{"x": noPool}},
		{name: "in no pool, and does not ask", mode: ha, pools: pools, nodes: []corev1.Node{node("x"), fourWorkers[0]}, asking: "w1", start: "w1"},

		{name: "Windows nodes are not of the pool", mode: ha, pools: share, nodes: append(fourWorkers[:2:2], fourWindows...), asking: "w1 w2",
			start: "w1", held: map[string]string{"w2": others}},
		{name: "a Windows node that is not ready", mode: ha, pools: pools, nodes: append(fourWorkers[:2:2], notReady(windows(node("x1", "worker")))), asking: "w1", start: "w1"},
		{name: "a Windows node has leave", mode: ha, pools: pools, nodes: append(fourWorkers[:2:2], fourWindows...), asking: "w1", leaving: "x1", start: "w1"},
		{name: "a Windows node asks", mode: ha, pools: pools, nodes: append(fourWorkers[:2:2], fourWindows...), asking: "w1 x1", start: "w1", held: map[string]string{"x1": onWindows}},
		{name: "a Windows node of a person's pool", mode: ha, pools: append(pools[:3:3], pool("gpu")), nodes: []corev1.Node{windows(node("x1", "worker", "gpu")), node("w1", "worker", "gpu")},
			asking: "w1 x1", start: "w1", held: map[string]string{"x1": onWindows}},
		{name: "plain Kubernetes, a Windows node asks", mode: ha, nodes: []corev1.Node{windows(node("x1")), notReady(windows(node("x2"))), node("w1")}, asking: "w1 x1",
			start: "w1", held: map[string]string{"x1": onWindows}},

		{name: "a master under disk pressure", mode: ha, pools: pools, nodes: append(threeMasters[:2:2], reports(node("m3", "master"), "DiskPressure", "True")), asking: "m1",
			held: map[string]string{"m1": others}},
		{name: "a master under memory pressure", mode: ha, pools: pools, nodes: append(threeMasters[:2:2], reports(node("m3", "master"), "MemoryPressure", "True")), asking: "m1",
			held: map[string]string{"m1": others}},
		{name: "a master short of processes", mode: ha, pools: pools, nodes: append(threeMasters[:2:2], reports(node("m3", "master"), "PIDPressure", "True")), asking: "m1",
			held: map[string]string{"m1": others}},
		{name: "a master without a network", mode: ha, pools: pools, nodes: append(threeMasters[:2:2], reports(node("m3", "master"), "NetworkUnavailable", "True")), asking: "m1",
			held: map[string]string{"m1": others}},
		{name: "a master of which nobody knows", mode: ha, pools: pools, nodes: append(threeMasters[:2:2], reports(node("m3", "master"), "Ready", "Unknown")), asking: "m1",
			held: map[string]string{"m1": others}},
		{name: "a master that says nothing yet", mode: ha, pools: pools, nodes: append(threeMasters[:2:2], reporting(node("m3", "master"), nil)), asking: "m1",
			held: map[string]string{"m1": others}},
		{name: "a master under no pressure", mode: ha, pools: pools, nodes: append(threeMasters[:2:2], reports(node("m3", "master"), "DiskPressure", "False")), asking: "m1", start: "m1"},
		{name: "the only node, under pressure", mode: sr, pools: pools, nodes: []corev1.Node{reports(node("m1", "master"), "DiskPressure", "True")}, asking: "m1", start: "m1"},
		{name: "an arbiter is missing", mode: arbiter, pools: pools, nodes: withArbiter[:2], asking: "m1", held: map[string]string{"m1": others}},

		{name: "gone", mode: ha, pools: pools, nodes: fourWorkers, asking: "w9"},
		{name: "nonsense in one pool", mode: ha, pools: stockPools(pool("master"), pool("worker", most("many")), pool("arbiter")), nodes: append(threeMasters[:3:3], fourWorkers...),
			asking: "m1 w1", start: "m1", held: map[string]string{"w1": bad}},

		{name: "plain Kubernetes", mode: sr, nodes: []corev1.Node{node("m1", "control-plane"), node("x"), node("y")}, asking: "m1 x y", start: "m1 x", held: map[string]string{"y": others}},
		{name: "plain Kubernetes, three masters", mode: ha, nodes: []corev1.Node{node("m1", "control-plane"), node("m2", "control-plane"), node("m3", "control-plane")}, asking: "m1 m2",
			start: "m1", held: map[string]string{"m2": others}},
	} {
		t.Run(test.name, func(t *testing.T) {
			start, held, err := machineconfig.MayStart(machineconfig.Turn{
				Cluster: *clusterOf(test.mode), Pools: pointers(test.pools), Nodes: pointers(test.nodes), Asking: strings.Fields(test.asking), Leaving: strings.Fields(test.leaving),
			})
			if wrong := strings.HasPrefix(test.name, "nonsense"); wrong != errors.Is(err, machineconfig.ErrMaxUnavailable) || !wrong && err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, hold := range held {
				got[hold.Node] = hold.Why
			}
			if test.held == nil {
				test.held = map[string]string{}
			}
			if strings.Join(start, " ") != test.start || !cmp.Equal(got, test.held) {
				t.Errorf("start %v, held %v; want %s, %v", start, got, test.start, test.held)
			}
			for i := range test.nodes {
				if _, added := test.nodes[i].Labels[machineconfig.MasterRole]; added && test.pools == nil {
					t.Errorf("node %s was changed", test.nodes[i].Name)
				}
			}
		})
	}
}

// Two pools that claim one node hold that node, and no other.
func TestMayStartUnclear(t *testing.T) {
	turn := machineconfig.Turn{
		Cluster: *clusterOf(ha), Pools: pointers([]mcfgv1.MachineConfigPool{pool("worker"), pool("infra"), pool("gpu")}),
		Nodes: pointers([]corev1.Node{node("w1", "worker", "infra", "gpu"), node("w2", "worker")}), Asking: []string{"w1", "w2"},
	}
	start, held, err := machineconfig.MayStart(turn)
	if !errors.Is(err, machineconfig.ErrPools) || !cmp.Equal(start, []string{"w2"}) || len(held) != 1 || held[0].Node != "w1" {
		t.Errorf("start %v, held %v, %v", start, held, err)
	}
}

// Whatever is asked in whatever state, no more nodes are away than may be, and where somebody can go, somebody goes.
func TestMayStartKeepsTheBudget(t *testing.T) {
	pools := []mcfgv1.MachineConfigPool{pool("master", most("9")), pool("worker", most("2")), pool("arbiter")}
	for state := range 4 * 4 * 4 {
		// Each of three masters is well, down, asking, or asking and down.
		nodes, asking := []corev1.Node{}, []string{}
		down := 0
		for i, digit := range []int{state % 4, state / 4 % 4, state / 16} {
			n := node("m"+string(rune('1'+i)), "master")
			if digit%2 == 1 {
				n = notReady(n)
				down++
			}
			if digit >= 2 {
				asking = append(asking, n.Name)
			}
			nodes = append(nodes, n)
		}
		start, held, err := machineconfig.MayStart(machineconfig.Turn{Cluster: *clusterOf(ha), Pools: pointers(pools), Nodes: pointers(nodes), Asking: asking})
		if err != nil {
			t.Fatal(err)
		}
		away := down
		for i := range nodes {
			for _, name := range start {
				if name == nodes[i].Name && nodes[i].Status.Conditions[0].Status == corev1.ConditionTrue {
					away++
				}
			}
		}
		switch {
		case len(start)+len(held) != len(asking):
			t.Errorf("state %d: %v asked, %v start, %v held", state, asking, start, held)
		case len(start) > 0 && away > max(1, down), len(start) > 1:
			t.Errorf("state %d: %v start, %d away", state, start, away)
		case len(start) == 0 && len(asking) > 0 && down == 0:
			t.Errorf("state %d: nobody starts", state)
		}
	}
}
