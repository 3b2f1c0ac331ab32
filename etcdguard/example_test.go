// SPDX-License-Identifier: Apache-2.0

package etcdguard_test

import (
	"fmt"
	"log"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/etcdguard/internal/fixture"
	"github.com/solonode/sno/topology"
)

func clusterWith(mode configv1.TopologyMode) topology.Cluster {
	return topology.Cluster{ControlPlane: topology.ReadingOf(mode), Infrastructure: topology.ReadingOf(mode)}
}

// Guards as current operators create them.
func ExamplePods() {
	host, err := etcdguard.NewHost(clusterWith(configv1.HighlyAvailableArbiterMode), 3, "cli")
	if err != nil {
		log.Fatal(err)
	}
	pods, err := etcdguard.Pods(host, []corev1.Node{fixture.Node("one", "master"), fixture.Node("two", "arbiter"), fixture.Node("three", "worker")})
	if err != nil {
		log.Fatal(err)
	}
	if pods == nil {
		fmt.Println("existing guards are to be deleted")
	}
	for _, pod := range pods {
		fmt.Println(pod.Name, "on", pod.Spec.NodeName)
	}
	// Output:
	// etcd-guard-one on one
	// etcd-guard-two on two
}

func ExampleSafeToRemove() {
	cluster := clusterWith(configv1.HighlyAvailableTopologyMode)
	members := []etcdguard.Member{{ID: 1, Healthy: true}, {ID: 2, Healthy: true}, {ID: 3}}
	fmt.Println(etcdguard.SafeToRemove(cluster, nil, members, 1))
	fmt.Println(etcdguard.SafeToRemove(cluster, nil, members, 3))
	// Output:
	// {false Without this member etcd would lose its quorum; bring an unhealthy member back, or remove that one first} <nil>
	// {true } <nil>
}

func ExampleSafeToRestart() {
	cluster := clusterWith(configv1.HighlyAvailableTopologyMode)
	members := []etcdguard.Member{{ID: 1, Healthy: true}, {ID: 2, Healthy: true}, {ID: 3}}
	fmt.Println(etcdguard.SafeToRestart(cluster, members, 1))
	fmt.Println(etcdguard.SafeToRestart(cluster, members, 3))
	fmt.Println(etcdguard.SafeToRestart(topology.Cluster{}, members, 1))
	// Output:
	// {false Etcd would have no quorum while this member restarts; bring an unhealthy member back, or add one, first} <nil>
	// {true } <nil>
	// {false } no topology: read the Cluster with topology.FromInfrastructure: mode ""
}
