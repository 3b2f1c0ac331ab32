package topology_test

import (
	configv1 "github.com/openshift/api/config/v1"
)

const (
	ha       = configv1.HighlyAvailableTopologyMode
	arbiter  = configv1.HighlyAvailableArbiterMode
	sr       = configv1.SingleReplicaTopologyMode
	dual     = configv1.DualReplicaTopologyMode
	external = configv1.ExternalTopologyMode
	empty    = configv1.TopologyMode("")
	unknown  = configv1.TopologyMode("QuintupleReplica")
)

// allModes is everything a topology field can hold.
var allModes = []configv1.TopologyMode{ha, arbiter, sr, dual, external, empty, unknown}

func count(n int64) *int64 { return &n }
