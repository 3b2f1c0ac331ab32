// SPDX-License-Identifier: Apache-2.0

package auth

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/unsupportedconfig"
)

// Minimum is the number of control-plane nodes that the OAuth servers wait for.
type Minimum struct {
	Nodes       int32  // at least 1
	Deprecation string // a message about an override that is set
	Unreadable  error  // an unsupportedconfig.ErrUnreadable to report; Nodes then follows only the topology
}

// MinimumControlPlaneNodes returns the number of control-plane nodes that the OAuth servers need (R-AUTH-1): 1 on
// SingleReplica, 2 on DualReplica and HighlyAvailableArbiter, else 3, or 1 if OverrideKey is true in overrides, the raw
// spec.unsupportedConfigOverrides (U-AUTH-5). Error: topology.ErrClusterNotRead.
func MinimumControlPlaneNodes(cluster topology.Cluster, overrides []byte) (Minimum, error) {
	if err := cluster.Validate(); err != nil {
		return Minimum{}, err
	}
	override, _, err := unsupportedconfig.Read(overrides, OverrideKey)
	minimum := Minimum{Nodes: minimumByTopology(cluster.ControlPlane.Mode), Deprecation: override.Deprecation(OverrideKey), Unreadable: err}
	if override.Value && minimum.Nodes > 2 {
		minimum.Nodes = 1
	}
	return minimum, nil
}

func minimumByTopology(mode configv1.TopologyMode) int32 {
	switch mode {
	case configv1.SingleReplicaTopologyMode:
		return 1
	case configv1.DualReplicaTopologyMode, configv1.HighlyAvailableArbiterMode:
		return 2
	case configv1.HighlyAvailableTopologyMode, configv1.ExternalTopologyMode:
	}
	return 3
}
