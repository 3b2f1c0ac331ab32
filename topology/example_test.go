// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/topology"
)

// An infrastructure topology of a future release is HighlyAvailable.
func ExampleFromInfrastructure() {
	cluster, err := topology.FromInfrastructure(&configv1.Infrastructure{
		Status: configv1.InfrastructureStatus{
			ControlPlaneTopology:   configv1.SingleReplicaTopologyMode,
			InfrastructureTopology: "FromTheFuture",
			PlatformStatus:         &configv1.PlatformStatus{Type: configv1.NonePlatformType},
		},
	})
	if err != nil {
		fmt.Println("keep the last cluster:", err)
		return
	}
	fmt.Println(cluster.ControlPlane.Mode, cluster.Infrastructure.Mode, cluster.Platform)
	fmt.Println("high availability:", cluster.HighAvailability())
	for _, finding := range cluster.Findings() {
		fmt.Println(finding)
	}
	// Output:
	// SingleReplica HighlyAvailable None
	// high availability: None
	// status.infrastructureTopology has the unknown value "FromTheFuture", acting on HighlyAvailable
}

// An object of an old prototype has a high-availability mode instead of topologies.
func ExampleFromUnstructured() {
	cluster, err := topology.FromUnstructured(&unstructured.Unstructured{Object: map[string]any{
		"kind":   "Infrastructure",
		"status": map[string]any{"highAvailabilityMode": "None", "platform": "AWS"},
	}})
	fmt.Println(cluster.ControlPlane.Mode, cluster.Infrastructure.Mode, cluster.Platform, err)
	// Output: SingleReplica SingleReplica AWS <nil>
}

func ExampleCluster_Governing() {
	cluster := topology.Cluster{
		ControlPlane:   topology.ReadingOf(configv1.SingleReplicaTopologyMode),
		Infrastructure: topology.ReadingOf(configv1.HighlyAvailableTopologyMode),
	}
	for _, pool := range []topology.Pool{topology.ControlPlanePool, topology.WorkerPool} {
		mode := cluster.Governing(pool)
		fmt.Printf("%s: %s, replicas %d, spread %v\n", pool, mode, topology.Replicas(mode), topology.SpreadRequired(mode))
	}
	// Output:
	// master: SingleReplica, replicas 1, spread false
	// worker: HighlyAvailable, replicas 2, spread true
}

// Pods with host ports: the old pod must end before the new one starts.
func ExampleRolloutStrategy() {
	for _, hostPorts := range []bool{true, false} {
		rollout := topology.RolloutStrategy(configv1.SingleReplicaTopologyMode, hostPorts)
		fmt.Printf("host ports %v: maxUnavailable %s, maxSurge %s\n", hostPorts, rollout.MaxUnavailable.String(), rollout.MaxSurge.String())
	}
	// Output:
	// host ports true: maxUnavailable 1, maxSurge 0
	// host ports false: maxUnavailable 0, maxSurge 1
}

// Pinned pods need node selector and tolerations.
func ExamplePlacementOf() {
	placement := topology.PlacementOf(topology.ControlPlanePool)
	fmt.Println(placement.NodeSelector())
	for _, toleration := range placement.Tolerations() {
		fmt.Println(toleration.Key, toleration.Operator, toleration.Effect)
	}
	// Output:
	// map[node-role.kubernetes.io/master:]
	// node-role.kubernetes.io/master Exists NoSchedule
	// node-role.kubernetes.io/control-plane Exists NoSchedule
}

// Row 5 of the enhancement's table: platform None, two day-1 workers.
func ExampleDecide() {
	one, two := int64(1), int64(2)
	install := topology.Install{
		Platform:     configv1.NonePlatformType,
		ControlPlane: &one,
		Compute:      []topology.ComputePool{{Name: "worker", Replicas: &two}},
	}
	for _, policy := range topology.Policies() {
		decision, err := topology.Decide(install, policy)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s, %d router(s) in pool %s, load balancer needed: %v\n", policy,
			decision.InfrastructureTopology, decision.IngressReplicas, decision.IngressPool, decision.LoadBalancer.Needed)
	}
	// Output:
	// enhancement: SingleReplica, 1 router(s) in pool master, load balancer needed: false
	// worker-count: HighlyAvailable, 2 router(s) in pool worker, load balancer needed: true
	// default-placement: HighlyAvailable, 1 router(s) in pool master, load balancer needed: false
}
