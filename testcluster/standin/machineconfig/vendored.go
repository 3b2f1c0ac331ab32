// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/machineconfig"
)

func vendoredRules(policy machineconfig.DrainPolicy) rules {
	return rules{
		turns: vendoredTurns, mayStart: vendoredMayStart, keepsDecision: policy == machineconfig.DrainWorkers, conditions: true,
		required: func(s state, node string, draining []string, load func(*machineconfig.Inputs) error) (machineconfig.DrainDecision, error) {
			in := machineconfig.Inputs{Cluster: &s.cluster, Nodes: s.nodes, Node: node, Draining: draining, Policy: policy}
			if policy == machineconfig.DrainWorkers && s.cluster.ControlPlane.Mode == configv1.SingleReplicaTopologyMode {
				if err := load(&in); err != nil {
					return machineconfig.DrainDecision{}, err
				}
			}
			return machineconfig.DrainRequired(in)
		},
	}
}

func vendoredMayStart(s state, pending, draining []string) ([]string, map[string]string, error) {
	start, held, err := machineconfig.MayStart(machineconfig.DrainState{
		Cluster: s.cluster, Pools: s.pools, Nodes: s.nodePointers(), Pending: pending, Draining: draining,
	})
	waiting := map[string]string{}
	for node, result := range held {
		waiting[node] = result.Message
	}
	return start, waiting, err
}

// vendoredTurns limits the nodes that take a configuration at once to MaxUnavailable of their pool: for master and
// arbiter of both together. Arbiters come after masters.
func vendoredTurns(s state) (map[string]string, error) {
	turns := map[string]string{}
	var errs []error
	groups := map[string][]poolNode{}
	for i := range s.nodes {
		pool, err := machineconfig.PoolOf(&s.nodes[i], s.pools)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if pool != nil {
			name := pool.Name
			if name == machineconfig.ArbiterPool {
				name = machineconfig.MasterPool
			}
			groups[name] = append(groups[name], poolNode{&s.nodes[i], pool})
		}
	}
	for _, group := range groups {
		errs = append(errs, takeTurns(group, turns))
	}
	return turns, errors.Join(errs...)
}

type poolNode struct {
	node *corev1.Node
	pool *mcfgv1.MachineConfigPool
}

// outdated reports whether the node has a daemon and another configuration than its pool.
func (n poolNode) outdated() bool {
	current, has := n.node.Annotations[machineconfig.CurrentConfigAnnotation]
	target := n.pool.Spec.Configuration.Name
	return has && target != "" && current != target
}

// updating reports whether the node was assigned a configuration that it has not taken yet.
func (n poolNode) updating() bool {
	return n.node.Annotations[machineconfig.CurrentConfigAnnotation] != n.node.Annotations[machineconfig.DesiredConfigAnnotation]
}

func takeTurns(group []poolNode, turns map[string]string) error {
	master := func(n poolNode) bool { return n.pool.Name == machineconfig.MasterPool }
	pool := group[0].pool
	if i := slices.IndexFunc(group, master); i >= 0 {
		pool = group[i].pool
	}
	limit, err := machineconfig.MaxUnavailable(pool, len(group))
	if err != nil {
		return fmt.Errorf("pool %s: %w", pool.Name, err)
	}
	unavailable := 0
	for _, n := range group {
		if n.updating() || !available(n.node) {
			unavailable++
		}
	}
	mastersFirst := slices.ContainsFunc(group, func(n poolNode) bool { return master(n) && n.outdated() && !n.pool.Spec.Paused })
	for _, n := range group {
		target := n.pool.Spec.Configuration.Name
		switch {
		case !n.outdated() || n.pool.Spec.Paused || n.node.Annotations[machineconfig.DesiredConfigAnnotation] == target:
			continue
		case n.pool.Name == machineconfig.ArbiterPool && mastersFirst:
			continue
		case n.updating() || !available(n.node): // counted already
			turns[n.node.Name] = target
		case unavailable < limit:
			turns[n.node.Name] = target
			unavailable++
		}
	}
	return nil
}

func available(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// gracePeriods returns those for the kubelet of the only node, zero if it must not have any. Where there are other
// nodes, they would send requests to pods of a node that shuts down.
func gracePeriods(s state, pods []corev1.Pod) machineconfig.GracePeriods {
	if s.cluster.ControlPlane.Mode != configv1.SingleReplicaTopologyMode || len(s.nodes) != 1 {
		return machineconfig.GracePeriods{}
	}
	return machineconfig.ShutdownGracePeriods(pods, machineconfig.DefaultShutdownBound)
}
