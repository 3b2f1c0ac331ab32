// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/machineconfig"
)

// mayStart returns which of the pending drains may start, and why the others wait. The stock operator cordons and
// drains any node that requests it (U-MCO-1, U-MCO-2): the daemon of a node with SingleReplica requests none.
func (r *reconciler) mayStart(s state, pending, draining []string) (start []string, waiting map[string]string, err error) {
	if r.stock {
		return pending, nil, nil
	}
	nodes := make([]*corev1.Node, len(s.nodes))
	for i := range s.nodes {
		nodes[i] = &s.nodes[i]
	}
	start, held, err := machineconfig.MayStart(machineconfig.DrainState{
		Cluster: s.cluster, Pools: s.pools, Nodes: nodes, Pending: pending, Draining: draining,
	})
	waiting = map[string]string{}
	for node, result := range held {
		waiting[node] = result.Message
	}
	return start, waiting, err
}

// required reports whether a node is drained. If not, the request is acknowledged at once.
func (r *reconciler) required(s state, node string, draining []string) (machineconfig.DrainDecision, error) {
	if r.stock {
		return machineconfig.DrainDecision{Required: true}, nil
	}
	return machineconfig.DrainRequired(machineconfig.Inputs{
		Cluster: &s.cluster, Nodes: s.nodes, Node: node, Draining: draining, Policy: machineconfig.DrainNever,
	})
}
