// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/console/internal/fixture"
)

// eachTopology calls f with every pair of topologies, and whether there is one replica and whether it runs on workers.
func eachTopology(f func(controlPlane, infrastructure configv1.TopologyMode, single bool, onWorkers bool)) {
	for _, controlPlane := range fixture.AllModes {
		for _, infrastructure := range fixture.AllModes {
			f(controlPlane, infrastructure, controlPlane == fixture.SR || (controlPlane == fixture.External && infrastructure == fixture.SR), controlPlane == fixture.External)
		}
	}
}
