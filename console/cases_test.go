// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology/topologytest"
)

// eachTopology calls f with every pair of topologies, and whether there is one replica and whether it runs on workers.
func eachTopology(f func(controlPlane, infrastructure configv1.TopologyMode, single bool, onWorkers bool)) {
	for _, controlPlane := range topologytest.AllModes {
		for _, infrastructure := range topologytest.AllModes {
			f(controlPlane, infrastructure, controlPlane == topologytest.SR || (controlPlane == topologytest.External && infrastructure == topologytest.SR), controlPlane == topologytest.External)
		}
	}
}
