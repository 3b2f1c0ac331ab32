// SPDX-License-Identifier: Apache-2.0

package etcdguard_test

import (
	"fmt"
	"log"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/etcdguard"
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
	pods, err := etcdguard.Pods(host, []corev1.Node{node("one", "master"), node("two", "arbiter"), node("three", "worker")})
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

// The first step on one node is to make the release's guard unmanaged.
func ExampleDecide() {
	cluster := clusterWith(configv1.SingleReplicaTopologyMode)
	decision := etcdguard.Decide(etcdguard.Inputs{
		Cluster:        &cluster,
		Members:        []etcdguard.Member{{ID: 1, Healthy: true}},
		ClusterVersion: &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}},
		Deployment:     staticGuard(), // as the cluster-version-operator created it
		Budget:         staticBudget(),
	})
	fmt.Println(decision.Action, decision.Result.Reason)
	for _, entry := range decision.ClusterVersion.Spec.Overrides {
		fmt.Println(*entry.Kind, *entry.Namespace, *entry.Name, *entry.Unmanaged)
	}
	// Output:
	// Claim TakingOver
	// Deployment openshift-etcd etcd-quorum-guard true
	// PodDisruptionBudget openshift-etcd etcd-quorum-guard true
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
