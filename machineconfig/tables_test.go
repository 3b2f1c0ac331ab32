// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/fit"
	"github.com/solonode/sno/machineconfig/internal/fixture"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/topologytest"
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
func (c drainCase) check(start []string, waiting map[string]machineconfig.Waiting) error {
	started := func(n drainNode) bool { return slices.Contains(start, n.name) }
	mastersPending := c.count(func(n drainNode) bool { return n.exists && n.pending && n.role == "master" && c.paused != "master" }) > 0
	want := map[string]machineconfig.Waiting{}
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
	requests := machineconfig.DrainState{Cluster: *fixture.ClusterOf(c.mode)}
	for _, name := range []string{"master", "worker", "arbiter"} {
		p := fixture.Pool(name, withMaxUnavailable(maxUnavailable))
		p.Spec.Paused = c.paused == name
		requests.Pools = append(requests.Pools, &p)
	}
	for _, n := range c.nodes {
		made := fixture.Node(n.name, n.role)
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
	for _, mode := range []configv1.TopologyMode{topologytest.SR, topologytest.Dual, topologytest.Arbiter, topologytest.HA, topologytest.External} {
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
		drainCases(topologytest.SR, "worker", "worker", func(c drainCase, exist int) {
			c.limit = limit[exist]
			c.test(t, maxUnavailable)
		})
	}
}

func TestDrainTable(t *testing.T) {
	const all = machineconfig.DrainPolicy("all")
	clusters := map[string]*topology.Cluster{"nil": nil, "unread": {}}
	for _, mode := range allModes {
		clusters[string(mode)] = fixture.ClusterOf(mode)
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
