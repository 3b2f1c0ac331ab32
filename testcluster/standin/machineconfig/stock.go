// SPDX-License-Identifier: Apache-2.0

package machineconfig

import "github.com/solonode/sno/machineconfig"

// The part of the stock operator that takes nodes out of service (U-MCO-1, U-MCO-2). It writes the topology onto every
// node, and cordons and drains any node that requests it: the daemon of a node with SingleReplica requests none.
func stockRules() rules {
	return rules{
		mayStart: func(_ state, pending, _ []string) ([]string, map[string]string, error) { return pending, nil, nil },
		required: func(state, string, []string, func(*machineconfig.Inputs) error) (machineconfig.DrainDecision, error) {
			return machineconfig.DrainDecision{Required: true}, nil
		},
	}
}
