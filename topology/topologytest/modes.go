// SPDX-License-Identifier: Apache-2.0

package topologytest

import configv1 "github.com/openshift/api/config/v1"

// The five modes, and two other values.
const (
	SR       = configv1.SingleReplicaTopologyMode
	HA       = configv1.HighlyAvailableTopologyMode
	Arbiter  = configv1.HighlyAvailableArbiterMode
	Dual     = configv1.DualReplicaTopologyMode
	External = configv1.ExternalTopologyMode
	Empty    = configv1.TopologyMode("")
	Unknown  = configv1.TopologyMode("Quantum")
)

// AllModes are all seven.
var AllModes = []configv1.TopologyMode{HA, Arbiter, SR, Dual, External, Empty, Unknown}
