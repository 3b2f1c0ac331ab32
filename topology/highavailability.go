package topology

import configv1 "github.com/openshift/api/config/v1"

// HighAvailabilityMode is the two-valued mode of the first enhancements (R-TOP-3). It never shipped in openshift/api (U-TOP-2), so
// it is derived from the topology fields.
type HighAvailabilityMode string

// The high-availability modes.
const (
	HighAvailabilityNone HighAvailabilityMode = "None" // spend nothing on redundancy, and wait for no nodes that will never exist
	HighAvailabilityFull HighAvailabilityMode = "Full"
)

// declaredTopologies is what a declared mode means for a topology field that is empty.
var declaredTopologies = map[HighAvailabilityMode]configv1.TopologyMode{
	HighAvailabilityNone: configv1.SingleReplicaTopologyMode,
	HighAvailabilityFull: configv1.HighlyAvailableTopologyMode,
}

// HighAvailability returns None if and only if the topology that governs the control plane is SingleReplica. DualReplica and
// HighlyAvailableArbiter are Full: they survive the loss of a node.
func (c Cluster) HighAvailability() HighAvailabilityMode {
	if SingleReplica(c.Governing(ControlPlanePool)) {
		return HighAvailabilityNone
	}
	return HighAvailabilityFull
}
