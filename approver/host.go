package approver

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

// Host is what an operator that approves requests knows about its cluster.
type Host struct {
	Cluster topology.Cluster
	// Machines tells whether there are any, which confirm who a node is.
	Machines bool
}

// Enabled tells whether an operator may approve client certificates by itself. On a single control-plane node without Machines it may
// not, because nothing in the cluster confirms that a request comes from the node that it names (seed 004, "Cluster Machine
// Approver"). Serving certificates are another matter: Decide approves those that the kubelet's own certificate proves.
func Enabled(h Host) bool { return h.Machines || !alone(h.Cluster) }

// alone tells whether the control plane is one node of the cluster itself.
func alone(cluster topology.Cluster) bool {
	switch topology.ReadingOf(cluster.ControlPlane.Mode).Mode {
	case configv1.SingleReplicaTopologyMode:
		return true
	case configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableArbiterMode, configv1.DualReplicaTopologyMode,
		configv1.ExternalTopologyMode:
		return false
	}
	return false
}
