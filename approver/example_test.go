// SPDX-License-Identifier: Apache-2.0

package approver_test

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/topology"
)

// An operator that vendors the module checks whether it may approve requests of new nodes.
func ExampleEnabled() {
	for _, mode := range []configv1.TopologyMode{configv1.HighlyAvailableTopologyMode, configv1.SingleReplicaTopologyMode} {
		for _, machines := range []approver.MachinePresence{approver.MachinesAbsent, approver.MachinesPresent, approver.MachinesUnknown} {
			cluster := topology.Cluster{ControlPlane: topology.ReadingOf(mode), Infrastructure: topology.ReadingOf(mode)}
			enabled, err := approver.Enabled(approver.Host{Cluster: cluster, Machines: machines})
			fmt.Println(mode, enabled, err)
		}
	}
	// Output:
	// HighlyAvailable true <nil>
	// HighlyAvailable true <nil>
	// HighlyAvailable false invalid inputs: Machines are Unknown: read whether there are any
	// SingleReplica false <nil>
	// SingleReplica true <nil>
	// SingleReplica false invalid inputs: Machines are Unknown: read whether there are any
}
