// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/fit"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
)

type drainNode struct {
	name, role                               string
	exists, unavailable, pending, restarting bool
}

const states = 1 + 8 // of a drainNode: missing, or any combination of three flags

func drainNodeOf(name, role string, state int) drainNode {
	if state == 0 {
		return drainNode{name: name, role: role}
	}
	state--
	return drainNode{name, role, true, state&1 > 0, state&2 > 0, state&4 > 0}
}

func (n drainNode) isPending() bool { return n.exists && n.pending && !n.restarting }

// drainCase has the nodes that share a limit.
type drainCase struct {
	mode   configv1.TopologyMode
	nodes  []drainNode
	paused string
	limit  int
}

func (c drainCase) count(of func(drainNode) bool) int {
	return len(slices.DeleteFunc(slices.Clone(c.nodes), func(n drainNode) bool { return !of(n) }))
}

// check compares a result with the rules, independent of the code: a pending node starts if its pool is not paused, it
// does not wait for a master, and fewer nodes than the limit are unavailable.
func (c drainCase) check(start []string, waiting map[string]patch.Result) error {
	started := func(n drainNode) bool { return slices.Contains(start, n.name) }
	mastersPending := c.count(func(n drainNode) bool { return n.exists && n.pending && n.role == "master" && c.paused != "master" }) > 0
	want := map[string]patch.Result{}
	for _, n := range c.nodes {
		if !n.isPending() {
			continue
		}
		before := func(other drainNode) bool {
			return other.isPending() && (other.unavailable && !n.unavailable || other.unavailable == n.unavailable && other.name < n.name)
		}
		unavailable := c.count(func(other drainNode) bool {
			return other.exists && (other.restarting || !other.pending && other.unavailable || before(other) && (started(other) || other.unavailable))
		})
		switch {
		case c.paused == n.role:
			want[n.name] = machineconfig.PendingPoolPaused
		case n.role == "arbiter" && mastersPending:
			want[n.name] = machineconfig.PendingMastersFirst
		case unavailable >= c.limit:
			want[n.name] = machineconfig.PendingMaxUnavailable
		}
		if _, waits := want[n.name]; waits == started(n) {
			return fmt.Errorf("node %s starts %t, %d unavailable of %d", n.name, started(n), unavailable, c.limit)
		}
	}
	if !maps.Equal(waiting, want) || !slices.IsSorted(start) || len(start)+len(waiting) != c.count(drainNode.isPending) {
		return fmt.Errorf("want waiting %v", want)
	}
	return nil
}

func (c drainCase) test(t *testing.T, maxUnavailable string) {
	t.Helper()
	requests := machineconfig.DrainState{Cluster: *clusterOf(c.mode)}
	for _, name := range []string{"master", "worker", "arbiter"} {
		p := pool(name, withMaxUnavailable(maxUnavailable))
		p.Spec.Paused = c.paused == name
		requests.Pools = append(requests.Pools, &p)
	}
	for _, n := range c.nodes {
		made := node(n.name, n.role)
		if n.unavailable {
			made = notReady(made)
		}
		if n.exists {
			requests.Nodes = append(requests.Nodes, &made)
		}
		if n.pending {
			requests.Pending = append(requests.Pending, n.name)
		}
		if n.restarting {
			requests.Draining = append(requests.Draining, n.name)
		}
	}
	start, waiting, err := machineconfig.MayStart(requests)
	if err == nil {
		err = c.check(start, waiting)
	}
	if err != nil {
		t.Fatalf("%s, maxUnavailable %q, paused %q, %+v: start %v, waiting %v: %v", c.mode, maxUnavailable, c.paused, c.nodes, start, waiting, err)
	}
}

func drainCases(mode configv1.TopologyMode, role, third string, call func(c drainCase, exist int)) {
	for state := range states * states * states {
		c := drainCase{mode: mode, nodes: []drainNode{
			drainNodeOf("n1", role, state%states), drainNodeOf("n2", role, state/states%states), drainNodeOf("n3", third, state/states/states),
		}}
		for _, c.paused = range []string{"", "master", "arbiter", "worker"} {
			call(c, c.count(func(n drainNode) bool { return n.exists }))
		}
	}
}

// TestMayStartTableOfControlPlane has three nodes, of which one may be unavailable, although the pools permit three.
func TestMayStartTableOfControlPlane(t *testing.T) {
	for _, mode := range []configv1.TopologyMode{sr, dual, arbiter, ha, external} {
		for _, third := range []string{"master", "arbiter"} {
			drainCases(mode, "master", third, func(c drainCase, _ int) {
				c.limit = 1
				c.test(t, "3")
			})
		}
	}
}

func TestMayStartTableOfWorkers(t *testing.T) {
	// By the number of nodes.
	limits := map[string][4]int{"": {1, 1, 1, 1}, "2": {1, 1, 2, 2}, "34%": {1, 1, 1, 1}, "67%": {1, 1, 1, 2}, "100%": {1, 1, 2, 3}}
	for maxUnavailable, limit := range limits {
		drainCases(sr, "worker", "worker", func(c drainCase, exist int) {
			c.limit = limit[exist]
			c.test(t, maxUnavailable)
		})
	}
}

func TestDrainTable(t *testing.T) {
	const all = machineconfig.DrainPolicy("all")
	clusters := map[string]*topology.Cluster{"nil": nil, "unread": {}}
	for _, mode := range allModes {
		clusters[string(mode)] = clusterOf(mode)
	}
	for name, cluster := range clusters {
		for _, policy := range []machineconfig.DrainPolicy{"", machineconfig.DrainNever, machineconfig.DrainWorkers, all} {
			for _, on := range []string{"m1", "w1", "gone"} {
				for _, room := range []bool{true, false} {
					in := running("1", "w1")
					if !room {
						in = running("3", "w1", "w2", "w3")
					}
					in.Cluster, in.Policy, in.Node = cluster, policy, on
					want, err := "", error(nil)
					switch {
					case name == "nil" || name == "unread":
						err = topology.ErrClusterNotRead
					case policy == all:
						err = machineconfig.ErrInputs
					case name != "SingleReplica":
						want = machineconfig.ReasonHighlyAvailable
					case policy != machineconfig.DrainWorkers:
						want = machineconfig.ReasonNowhereToGo
					case on == "m1":
						want = machineconfig.ReasonControlPlaneNode
					case on == "gone":
						want = fit.ReasonNotRead
					case room:
						want = fit.ReasonRoomElsewhere
					default:
						want = fit.ReasonNoNodeTakesPod
					}
					got, failed := machineconfig.DrainRequired(in)
					required := want == machineconfig.ReasonHighlyAvailable || want == fit.ReasonRoomElsewhere
					if got.Reason != want || got.Required != required || (got.Message == "") != (want == "") || !errors.Is(failed, err) {
						t.Errorf("cluster %s, policy %q, node %s, room %t: %+v, %v; want %s, %v", name, policy, on, room, got, failed, want, err)
					}
				}
			}
		}
	}
}

type choice struct {
	name string
	make func(*machineconfig.Inputs)
}

// TestDecideTable has every combination of the preconditions. The first matching row is expected.
func TestDecideTable(t *testing.T) {
	ownedByPerson := func(managed *[]metav1.ManagedFieldsEntry) {
		*managed = append(*managed, entry(person, `{"f:spec":{"f:logLevel":{}}}`))
	}
	inForce := written("1m30s", "90", "30s")
	factors := [][]choice{
		{{"valid", func(*machineconfig.Inputs) {}}, {"bad policy", func(in *machineconfig.Inputs) { in.Policy = "all" }}, {"unread", func(in *machineconfig.Inputs) { in.Cluster = &topology.Cluster{} }}},
		{{"single", func(*machineconfig.Inputs) {}}, {"no topology", func(in *machineconfig.Inputs) { in.Cluster = nil }}, {"highly available", func(in *machineconfig.Inputs) { in.Cluster = clusterOf(ha) }}},
		{{"one node", func(*machineconfig.Inputs) {}}, {"nodes not read", func(in *machineconfig.Inputs) { in.Nodes = nil }},
			{"no nodes", func(in *machineconfig.Inputs) { in.Nodes = []corev1.Node{} }}, {"two nodes", func(in *machineconfig.Inputs) { in.Nodes = append(in.Nodes, node("w1")) }}},
		{{"none", func(*machineconfig.Inputs) {}}, {"ours", inForce}, {"half", func(in *machineconfig.Inputs) { inForce(in); in.MachineConfig = nil }},
			{"their KubeletConfig", func(in *machineconfig.Inputs) { inForce(in); ownedByPerson(&in.KubeletConfigs[0].ManagedFields) }},
			{"their MachineConfig", func(in *machineconfig.Inputs) { inForce(in); ownedByPerson(&in.MachineConfig.ManagedFields) }}},
		{{"opted in", func(*machineconfig.Inputs) {}}, {"opted out", func(in *machineconfig.Inputs) {
			in.MachineConfiguration = &operatorv1.MachineConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
			optOut(in.MachineConfiguration)
		}}},
		{{"auto", func(*machineconfig.Inputs) {}}, {"on", func(in *machineconfig.Inputs) { in.Graceful = machineconfig.GracefulOn }}, {"off", func(in *machineconfig.Inputs) { in.Graceful = machineconfig.GracefulOff }}},
		{{"settled", func(*machineconfig.Inputs) {}}, {"paused", func(in *machineconfig.Inputs) { paused(&in.Pools[1]); updating(&in.Pools[1]) }}, {"updating", inPool(updating)},
			{"no pool", func(in *machineconfig.Inputs) { in.Pools = in.Pools[:1] }}, {"pool without its label", inPool(func(p *mcfgv1.MachineConfigPool) { p.Labels = map[string]string{"other": ""} })}},
		{{"free", func(*machineconfig.Inputs) {}}, {"another for workers", otherConfig("theirs", "worker", "{}")}, {"another for masters", otherConfig("theirs", "master", "{}")}},
		{{"pods", func(*machineconfig.Inputs) {}}, {"pods not read", func(in *machineconfig.Inputs) { in.Pods = nil }}},
	}
	const nothing, release, apply = "nothing", "release", "apply"
	type row struct {
		// when matches if at least one of each list is chosen.
		when           [][]string
		effect, reason string
	}
	rows := []row{
		{[][]string{{"bad policy", "unread"}}, nothing, patch.ReasonInvalid},
		{[][]string{{"no topology"}}, nothing, patch.ReasonWaitingForInfrastructure},
		{[][]string{{"nodes not read"}}, nothing, machineconfig.ReasonWaitingForNodes},
		{[][]string{{"their KubeletConfig", "their MachineConfig"}}, nothing, patch.ReasonFieldOwnedByOther},
		{[][]string{{"opted out"}}, release, patch.ReasonOptedOut},
		{[][]string{{"off"}}, release, patch.ReasonNotNeeded},
		{[][]string{{"auto"}, {"highly available"}}, release, patch.ReasonNotNeeded},
		{[][]string{{"auto"}, {"no nodes", "two nodes"}}, release, patch.ReasonNotNeeded},
		{[][]string{{"no pool", "pool without its label"}}, nothing, patch.ReasonWaitingForObject},
		{[][]string{{"another for masters"}}, release, patch.ReasonFieldOwnedByOther},
		{[][]string{{"pods not read"}}, nothing, machineconfig.ReasonWaitingForNodes},
		{[][]string{{"none", "half"}, {"updating"}}, nothing, machineconfig.ReasonSettling},
		{nil, apply, ""},
	}
	combinations := 1
	for _, choices := range factors {
		combinations *= len(choices)
	}
	for state := range combinations {
		var names []string
		rest, in := state, single()
		invalid := factors[0][rest%len(factors[0])].make
		for i, choices := range factors {
			chosen := choices[rest%len(choices)]
			rest /= len(choices)
			names = append(names, chosen.name)
			if i > 0 {
				chosen.make(&in)
			}
		}
		invalid(&in) // last: it replaces the cluster
		chosen := func(list []string) bool {
			return slices.ContainsFunc(list, func(name string) bool { return slices.Contains(names, name) })
		}
		want := rows[slices.IndexFunc(rows, func(r row) bool {
			return !slices.ContainsFunc(r.when, func(list []string) bool { return !chosen(list) })
		})]
		got := machineconfig.Decide(in)
		effect, reason := nothing, reasonOf(got.Result)
		file, config := chosen([]string{"ours"}), chosen([]string{"ours", "half"})
		switch {
		case got.KubeletConfig != nil && got.MachineConfig != nil:
			effect = apply
		case want.effect == release && got.Delete == config && got.Restarts == config:
			effect = release
		case got.Delete || got.Restarts:
			effect = "half"
		}
		if effect != want.effect || reason != want.reason || (effect == apply && got.Restarts != !file) {
			t.Fatalf("%q: %s (%s), restarts %t, want %s (%s)", names, effect, reason, got.Restarts, want.effect, want.reason)
		}
	}
}
