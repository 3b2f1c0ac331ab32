package approver

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

// Host is what an operator that approves requests knows about its cluster. Both fields are needed.
type Host struct {
	// Cluster is what topology.FromInfrastructure or topology.FromUnstructured read.
	Cluster topology.Cluster
	// Machines reports whether there are any, which confirm who a node is.
	Machines Presence
}

// Enabled reports whether an operator may approve client certificates by itself. On a single control-plane node without Machines it may
// not, because nothing in the cluster confirms that a request comes from the node that it names (R-APP-1). Serving
// certificates are another matter: Decide approves those that the kubelet's own certificate proves.
//
// It is false with every error: ErrInputs, and with it topology.ErrClusterNotRead, for a Host of which something was not read.
func Enabled(h Host) (bool, error) {
	if err := h.Cluster.Validate(); err != nil {
		return false, fmt.Errorf("%w: Cluster: %w", ErrInputs, err)
	}
	switch h.Machines {
	case Present:
		return true, nil
	case Absent:
		return !alone(h.Cluster), nil
	case Unknown:
	}
	return false, fmt.Errorf("%w: Machines are Unknown: read whether there are any", ErrInputs)
}

// alone tells whether the control plane is one node of the cluster itself.
func alone(cluster topology.Cluster) bool {
	switch cluster.ControlPlane.Mode {
	case configv1.SingleReplicaTopologyMode:
		return true
	case configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableArbiterMode, configv1.DualReplicaTopologyMode,
		configv1.ExternalTopologyMode:
		return false
	}
	return false
}
