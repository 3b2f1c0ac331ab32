package etcdguard_test

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/topology"
)

func clusterWith(mode configv1.TopologyMode) topology.Cluster {
	return topology.Cluster{ControlPlane: topology.ReadingOf(mode), Infrastructure: topology.ReadingOf(mode)}
}

// An etcd operator makes both, or deletes both where they are nil.
func ExampleDeployment() {
	for _, host := range []etcdguard.Host{
		{Cluster: clusterWith(configv1.HighlyAvailableTopologyMode), Members: 3, Image: "cli"},
		{Cluster: clusterWith(configv1.HighlyAvailableTopologyMode), Members: 5, Image: "cli"},
		{Cluster: clusterWith(configv1.DualReplicaTopologyMode), Members: 2, Image: "cli"},
		{Cluster: clusterWith(configv1.SingleReplicaTopologyMode), Members: 1, Image: "cli"},
	} {
		guard, budget := etcdguard.Deployment(host), etcdguard.DisruptionBudget(host)
		if guard == nil {
			fmt.Println("none:", budget == nil)
			continue
		}
		fmt.Println(*guard.Spec.Replicas, "guards, of which may go:", budget.Spec.MaxUnavailable)
	}
	// Output:
	// 3 guards, of which may go: 1
	// 5 guards, of which may go: 2
	// 2 guards, of which may go: 1
	// none: true
}

// The shape of today's operators: a pod for each node, and a budget that counts from below.
func ExamplePods() {
	host := etcdguard.Host{Cluster: clusterWith(configv1.HighlyAvailableArbiterMode), Members: 3, Image: "cli"}
	role := func(name, role string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/" + role: ""}}}
	}
	nodes := []corev1.Node{role("one", "master"), role("two", "master"), role("three", "arbiter"), role("four", "worker")}
	for _, pod := range etcdguard.Pods(host, nodes) {
		fmt.Println(pod.Name, "on", pod.Spec.NodeName)
	}
	fmt.Println("at least", etcdguard.PodsDisruptionBudget(host).Spec.MinAvailable)
	// Output:
	// etcd-guard-one on one
	// etcd-guard-two on two
	// etcd-guard-three on three
	// at least 2
}

// The first step on one node of a release with a static guard: the cluster-version-operator is told to let go. The guard is not
// touched yet.
func ExampleDecide() {
	cluster := clusterWith(configv1.SingleReplicaTopologyMode)
	decision := etcdguard.Decide(etcdguard.Inputs{
		Cluster:        &cluster,
		Members:        []etcdguard.Member{{ID: 1, Healthy: true}},
		ClusterVersion: &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: etcdguard.ClusterVersionName}},
		Deployment:     staticGuard(), // as the cluster-version-operator made it
		Budget:         staticBudget(),
	})
	fmt.Println(decision.Action)
	for _, entry := range decision.ClusterVersion.Spec.Overrides {
		fmt.Println(*entry.Kind, *entry.Namespace, *entry.Name, *entry.Unmanaged)
	}
	fmt.Println(decision.Result)
	// Output:
	// Claim
	// Deployment openshift-etcd etcd-quorum-guard true
	// PodDisruptionBudget openshift-etcd etcd-quorum-guard true
	// Progressing (TakingOver): Telling the cluster-version-operator to let go of the guard; minor upgrades wait until this is given back
}
