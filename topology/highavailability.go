// SPDX-License-Identifier: Apache-2.0

package topology

import configv1 "github.com/openshift/api/config/v1"

// HighAvailabilityMode is the mode of the first enhancements (R-TOP-3). It never shipped (U-TOP-2), so it is derived.
type HighAvailabilityMode string

// The high-availability modes.
const (
	HighAvailabilityNone HighAvailabilityMode = "None" // no redundancy, and no waiting for further nodes
	HighAvailabilityFull HighAvailabilityMode = "Full"
)

// declaredTopologies maps a declared mode to the topology of empty fields.
var declaredTopologies = map[HighAvailabilityMode]configv1.TopologyMode{
	HighAvailabilityNone: configv1.SingleReplicaTopologyMode,
	HighAvailabilityFull: configv1.HighlyAvailableTopologyMode,
}

// HighAvailability returns None if and only if the control plane is governed by SingleReplica.
func (c Cluster) HighAvailability() HighAvailabilityMode {
	if SingleReplica(c.Governing(ControlPlanePool)) {
		return HighAvailabilityNone
	}
	return HighAvailabilityFull
}
