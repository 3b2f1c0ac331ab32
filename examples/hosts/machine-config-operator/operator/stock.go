// SPDX-License-Identifier: Apache-2.0

package operator

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/machineconfig"
)

// The part of the stock operator that takes nodes out of service (U-MCO-1, U-MCO-2). It writes the topology onto every
// node, and cordons and drains any node that requests it. If the node's annotation is SingleReplica, it acknowledges
// the request at once; a real daemon of such a node requests none.
func stockRules() rules {
	return rules{
		mayStart: func(_ state, pending, _ []string) ([]string, map[string]string, error) { return pending, nil, nil },
		required: func(s state, node string, _ []string, _ func(*machineconfig.Inputs) error) (machineconfig.DrainDecision, error) {
			for i := range s.nodes {
				if s.nodes[i].Name == node && s.nodes[i].Annotations[machineconfig.TopologyAnnotation] == string(configv1.SingleReplicaTopologyMode) {
					return machineconfig.DrainDecision{}, nil
				}
			}
			return machineconfig.DrainDecision{Required: true}, nil
		},
	}
}
