// SPDX-License-Identifier: Apache-2.0

// Command topology reads an Infrastructure and asks what follows for an operand.
package main

import (
	"fmt"
	"log"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

func main() {
	cluster, err := topology.FromInfrastructure(&configv1.Infrastructure{Status: configv1.InfrastructureStatus{
		ControlPlaneTopology:   configv1.SingleReplicaTopologyMode,
		InfrastructureTopology: configv1.SingleReplicaTopologyMode,
		PlatformStatus:         &configv1.PlatformStatus{Type: configv1.NonePlatformType},
	}})
	if err != nil {
		log.Fatal(err) // an operator keeps the last cluster
	}
	mode := cluster.Governing(topology.ControlPlanePool)
	rollout := topology.RolloutStrategy(mode, false)
	fmt.Println(mode, topology.Replicas(mode), topology.SpreadRequired(mode), rollout.MaxUnavailable.String(), rollout.MaxSurge.String())
	fmt.Println(topology.PlacementOf(topology.ControlPlanePool).NodeSelector())
}
