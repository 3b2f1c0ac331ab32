package topology

import configv1 "github.com/openshift/api/config/v1"

// HighAvailabilityMode is the two-valued mode of the cluster of which the first enhancements speak (R-TOP-3). It never
// shipped in openshift/api, which has two topology fields instead (U-TOP-2), so it is derived from them.
type HighAvailabilityMode string

const (
	// HighAvailabilityNone: do not spend resources on redundancy and do not wait for nodes that will never exist.
	HighAvailabilityNone HighAvailabilityMode = "None"
	// HighAvailabilityFull: the ordinary behavior.
	HighAvailabilityFull HighAvailabilityMode = "Full"
)

// HighAvailability derives the mode: None if and only if the control plane is a single replica, or it is External and the
// infrastructure topology is SingleReplica, so that what is left in the cluster is a single replica.
//
// R-TOP-3 has None for fewer than three control-plane nodes. DualReplica and HighlyAvailableArbiter, which the API split
// off later for exactly two such nodes, are nevertheless Full: these clusters exist to survive the loss of a node, run two
// replicas and can drain a node, and None would take all of that away. Workers do not matter: a single control-plane node
// with workers is None, as there.
func (c Cluster) HighAvailability() HighAvailabilityMode {
	if SingleReplica(c.Governing(ControlPlanePool)) {
		return HighAvailabilityNone
	}
	return HighAvailabilityFull
}

// topology is what a declared mode means for a topology field that is empty; false if it says nothing.
func (m HighAvailabilityMode) topology() (configv1.TopologyMode, bool) {
	switch m {
	case HighAvailabilityNone:
		return configv1.SingleReplicaTopologyMode, true
	case HighAvailabilityFull:
		return configv1.HighlyAvailableTopologyMode, true
	default:
		return "", false
	}
}
