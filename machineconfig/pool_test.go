// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/internal/fixture"
	"github.com/solonode/sno/topology/topologytest"
)

func TestPoolOf(t *testing.T) {
	pools := []mcfgv1.MachineConfigPool{fixture.Pool("worker"), fixture.Pool("infra"), fixture.Pool("arbiter"), fixture.Pool("master")}
	for _, test := range []struct {
		roles []string
		want  string
	}{
		{[]string{"master"}, "master"}, {[]string{"worker"}, "worker"}, {[]string{"arbiter"}, "arbiter"},
		{[]string{"master", "worker"}, "master"}, {[]string{"master", "infra", "worker"}, "master"}, {[]string{"infra", "worker"}, "infra"},
		{[]string{"arbiter", "worker"}, "arbiter"}, {[]string{"infra", "arbiter"}, "infra"}, {nil, ""},
	} {
		n := fixture.Node("n", test.roles...)
		got, err := machineconfig.PoolOf(&n, fixture.Pointers(pools))
		name := ""
		if got != nil {
			name = got.Name
		}
		if err != nil || name != test.want {
			t.Errorf("%v: pool %q, %v, want %q", test.roles, name, err, test.want)
		}
	}
	n := fixture.Node("n", "infra", "gpu", "worker")
	if _, err := machineconfig.PoolOf(&n, fixture.Pointers(append(pools, fixture.Pool("gpu")))); !errors.Is(err, machineconfig.ErrPools) {
		t.Errorf("two pools: %v", err)
	}
	bad := fixture.Pool("gpu", func(p *mcfgv1.MachineConfigPool) {
		p.Spec.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Maybe"}}}
	})
	if _, err := machineconfig.PoolOf(&n, fixture.Pointers(append(pools, bad))); !errors.Is(err, machineconfig.ErrPools) || !strings.Contains(err.Error(), "gpu") {
		t.Errorf("bad selector: %v", err)
	}
	none := fixture.Pool("gpu", func(p *mcfgv1.MachineConfigPool) { p.Spec.NodeSelector = nil })
	if got, err := machineconfig.PoolOf(&n, []*mcfgv1.MachineConfigPool{&none}); got != nil || err != nil {
		t.Errorf("no selector: %v, %v", got, err)
	}
}

// nodesOf parses nodes such as "m1=master,down": a name, roles and states.
func nodesOf(text string) []*corev1.Node {
	var nodes []*corev1.Node
	for _, field := range strings.Fields(text) {
		name, words, _ := strings.Cut(field, "=")
		n := fixture.Node(name)
		for word := range strings.SplitSeq(words, ",") {
			switch word {
			case "":
			case "down":
				n = notReady(n)
			case "cordoned":
				n.Spec.Unschedulable = true
			case "windows":
				n = fixture.Windows(n)
			default:
				n.Labels["node-role.kubernetes.io/"+word] = ""
			}
		}
		nodes = append(nodes, &n)
	}
	return nodes
}

// poolsOf parses pools such as "worker=50%": a name and maxUnavailable.
func poolsOf(text string) []*mcfgv1.MachineConfigPool {
	var pools []*mcfgv1.MachineConfigPool
	for _, field := range strings.Fields(text) {
		name, value, _ := strings.Cut(field, "=")
		p := fixture.Pool(name, withMaxUnavailable(value))
		pools = append(pools, &p)
	}
	return pools
}

// TestMayStart has cases that are not in the TestMayStartTable tests: other pools, no pools, nodes in none, and more
// nodes.
func TestMayStart(t *testing.T) {
	type results = map[string]machineconfig.Waiting
	const stock = "master worker arbiter"
	maxReached, noPool, onWindows := machineconfig.PendingMaxUnavailable, machineconfig.PendingNoPool, machineconfig.PendingWindows
	for _, test := range []struct {
		name, pools, nodes, pending, draining, start string
		waiting                                      results
		err                                          error
	}{
		{"two of three masters", stock, "m1=master m2=master", "m1 m2", "", "m1", results{"m2": maxReached}, nil},
		{"both roles", stock, "m1=master,worker m2=master m3=master w1=worker", "m1 w1", "", "m1 w1", nil, nil},
		{"a node that a person cordoned is first", stock, "m1=master m2=master,cordoned m3=master", "m1 m2", "", "m2", results{"m1": maxReached}, nil},
		{"two cordoned masters", stock, "m1=master,cordoned m2=master,cordoned m3=master", "m1 m2", "", "m1", results{"m2": maxReached}, nil},
		{"half of the workers", "worker=50%", "w1=worker w2=worker w3=worker w4=worker", "w4 w3 w2 w1", "", "w1 w2", results{"w3": maxReached, "w4": maxReached}, nil},
		{"workers, one is drained", "worker=2", "w1=worker w2=worker w3=worker w4=worker", "w1 w3 w4", "w2", "w1", results{"w3": maxReached, "w4": maxReached}, nil},
		{"pools do not wait for each other", stock + " gpu", "m1=master m2=master m3=master w1=worker g1=gpu", "m1 w1 g1", "", "g1 m1 w1", nil, nil},
		{"in no pool", stock, "x w1=worker", "x w1", "", "w1", results{"x": noPool}, nil},
		{"in no pool, without a request", stock, "x w1=worker", "w1", "", "w1", nil, nil},
		{"missing node", stock, "w1=worker", "w9", "", "", nil, nil},
		{"Windows nodes are in no pool", "worker=34%", "w1=worker w2=worker x1=worker,windows x2=worker,windows x3=worker,windows,down", "w1 w2", "x1",
			"w1", results{"w2": maxReached}, nil},
		{"a Windows node of a person's pool", "worker gpu", "x1=worker,gpu,windows w1=worker,gpu", "w1 x1", "", "w1", results{"x1": onWindows}, nil},
		{"plain Kubernetes, a request of a Windows node", "", "x1=windows x2=windows,down w1", "w1 x1", "", "w1", results{"x1": onWindows}, nil},
		{"plain Kubernetes", "", "m1=control-plane m2=control-plane m3=control-plane,master x y", "m1 m3 x y", "", "m1 x", results{"m3": maxReached, "y": maxReached}, nil},
		{"plain Kubernetes, a master is down", "", "m1=control-plane m2=control-plane,down m3=control-plane", "m1", "", "", results{"m1": maxReached}, nil},
		// Only the nodes of an invalid pool wait.
		{"in two pools", "worker infra gpu", "w1=worker,infra,gpu w2=worker", "w1 w2", "", "w2", results{"w1": noPool}, machineconfig.ErrPools},
		{"maxUnavailable of many", "worker gpu=many", "w1=worker,gpu w2=worker", "w1 w2", "", "w2",
			results{"w1": machineconfig.PendingInvalidMaxUnavailable}, machineconfig.ErrMaxUnavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			start, waiting, err := machineconfig.MayStart(machineconfig.DrainState{
				Cluster: *fixture.ClusterOf(topologytest.HA), Pools: poolsOf(test.pools), Nodes: nodesOf(test.nodes),
				Pending: strings.Fields(test.pending), Draining: strings.Fields(test.draining),
			})
			if strings.Join(start, " ") != test.start || !maps.Equal(waiting, test.waiting) || !errors.Is(err, test.err) {
				t.Errorf("start %v, waiting %v, %v; want %s, %v, %v", start, waiting, err, test.start, test.waiting, test.err)
			}
		})
	}
}

// TestPendingChanges shows R-MCO-4: changes that wait in a paused pool are reported.
func TestPendingChanges(t *testing.T) {
	// rendered returns a pool with a config that was rendered from sources, after one from before.
	rendered := func(name, config string, sources, before []string, change ...func(*mcfgv1.MachineConfigPool)) mcfgv1.MachineConfigPool {
		p := fixture.Pool(name, change...)
		p.Spec.Configuration.Name = config
		for _, source := range sources {
			p.Spec.Configuration.Source = append(p.Spec.Configuration.Source, corev1.ObjectReference{Name: source})
		}
		for _, source := range before {
			p.Status.Configuration.Source = append(p.Status.Configuration.Source, corev1.ObjectReference{Name: source})
		}
		return p
	}
	withConfigs := func(n corev1.Node, current, desired string) corev1.Node {
		return fixture.Annotated(n, map[string]string{machineconfig.CurrentConfigAnnotation: current, machineconfig.DesiredConfigAnnotation: desired})
	}
	master, worker := fixture.Node("m1", "master", "worker"), fixture.Node("w1", "worker")
	base := []string{"00-master", "99-master-ssh"}
	for _, test := range []struct {
		name  string
		pools []mcfgv1.MachineConfigPool
		nodes []corev1.Node
		want  []string
	}{
		{"nothing is paused", []mcfgv1.MachineConfigPool{rendered("master", "r2", base, base)}, []corev1.Node{withConfigs(master, "r1", "r1")}, nil},
		{"nothing waits", []mcfgv1.MachineConfigPool{rendered("master", "r1", base, base, fixture.Paused)}, []corev1.Node{withConfigs(master, "r1", "r1")}, nil},
		{"the pool's config waits", []mcfgv1.MachineConfigPool{rendered("master", "r2", append(base[:2:2], "99-master-generated-kubelet"), base, fixture.Paused)}, []corev1.Node{withConfigs(master, "r1", "r1")},
			[]string{"master: kubelet configuration, for 1 node"}},
		{"the node's config waits", []mcfgv1.MachineConfigPool{rendered("master", "", base, base, fixture.Paused)}, []corev1.Node{withConfigs(master, "r1", "r2")},
			[]string{"master: changed contents of machine configs, for 1 node"}},
		{"several kinds", []mcfgv1.MachineConfigPool{rendered("master", "r2", []string{"00-master", "99-master-sno-graceful-shutdown", "99-master-generated-registries",
			"99-master-generated-kubelet-1", "50-mine", "99-master-generated-containerruntime"}, base, fixture.Paused)}, []corev1.Node{withConfigs(master, "r1", "r1")},
			[]string{"master: SSH keys, container runtime configuration, graceful shutdown, image registries, kubelet configuration, machine configs, for 1 node"}},
		{"several pools", []mcfgv1.MachineConfigPool{rendered("worker", "r9", base, base, fixture.Paused), rendered("master", "r2", base, base, fixture.Paused)},
			[]corev1.Node{withConfigs(master, "r1", "r1"), withConfigs(worker, "r8", "r8"), withConfigs(fixture.Node("w2", "worker"), "r9", "r9"), withConfigs(fixture.Node("w3", "worker"), "r8", "r8")},
			[]string{"master: changed contents of machine configs, for 1 node", "worker: changed contents of machine configs, for 2 nodes"}},
		{"a node without a daemon", []mcfgv1.MachineConfigPool{rendered("master", "r2", base, base, fixture.Paused)}, []corev1.Node{master}, nil},
		{"a Windows node", []mcfgv1.MachineConfigPool{rendered("worker", "r9", base, base, fixture.Paused)}, []corev1.Node{withConfigs(fixture.Windows(fixture.Node("x1", "worker")), "r8", "r8")}, nil},
		{"no pools", nil, []corev1.Node{withConfigs(master, "r1", "r2")}, nil},
	} {
		got, err := machineconfig.PendingChanges(fixture.Pointers(test.pools), fixture.Pointers(test.nodes))
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, err, diff)
		}
	}
	both := fixture.Node("x", "infra", "gpu")
	if _, err := machineconfig.PendingChanges(fixture.Pointers([]mcfgv1.MachineConfigPool{fixture.Pool("infra"), fixture.Pool("gpu")}), []*corev1.Node{&both}); !errors.Is(err, machineconfig.ErrPools) {
		t.Errorf("a node in two pools: %v", err)
	}
}
