// SPDX-License-Identifier: Apache-2.0

package operator

import (
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/topology"
)

// state is what the decisions need of the cluster.
type state struct {
	// cluster is the topology, and reported the value of the control plane's, which may be empty.
	cluster  topology.Cluster
	reported configv1.TopologyMode
	nodes    []corev1.Node
	pools    []*mcfgv1.MachineConfigPool
}

func (s state) nodePointers() []*corev1.Node {
	nodes := make([]*corev1.Node, len(s.nodes))
	for i := range s.nodes {
		nodes[i] = &s.nodes[i]
	}
	return nodes
}

// rules are the decisions that depend on the topology.
type rules struct {
	// turns returns the configurations that nodes may take now. nil: the operator assigns none.
	turns func(state) (map[string]string, error)
	// mayStart returns which of the pending drains may start, and why the others wait.
	mayStart func(s state, pending, draining []string) (start []string, waiting map[string]string, err error)
	// required reports whether a node is drained; not required is acknowledged at once. It reads the workloads with load
	// if it needs them.
	required func(s state, node string, draining []string, load func(*machineconfig.Inputs) error) (machineconfig.DrainDecision, error)
	// keepsDecision means that a drain that has started is required until its end.
	keepsDecision bool
	// conditions means that conditions are published.
	conditions bool
}
