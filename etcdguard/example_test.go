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
	for _, of := range []struct {
		mode    configv1.TopologyMode
		members int
	}{
		{configv1.HighlyAvailableTopologyMode, 3}, {configv1.HighlyAvailableTopologyMode, 5},
		{configv1.DualReplicaTopologyMode, 2}, {configv1.SingleReplicaTopologyMode, 1},
	} {
		host, err := etcdguard.NewHost(clusterWith(of.mode), of.members, "cli")
		if err != nil {
			fmt.Println(err)
			return
		}
		guard, err := etcdguard.Deployment(host)
		if err != nil {
			fmt.Println(err)
			return
		}
		budget, err := etcdguard.DisruptionBudget(host)
		if err != nil {
			fmt.Println(err)
			return
		}
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
	host, err := etcdguard.NewHost(clusterWith(configv1.HighlyAvailableArbiterMode), 3, "cli")
	if err != nil {
		fmt.Println(err)
		return
	}
	role := func(name, role string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/" + role: ""}}}
	}
	nodes := []corev1.Node{role("one", "master"), role("two", "master"), role("three", "arbiter"), role("four", "worker")}
	pods, err := etcdguard.Pods(host, nodes)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, pod := range pods {
		fmt.Println(pod.Name, "on", pod.Spec.NodeName)
	}
	budget, err := etcdguard.PodsDisruptionBudget(host)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("at least", budget.Spec.MinAvailable)
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
	// Progressing (TakingOver): Telling the cluster-version-operator to let go of the guard, which only blocks drains on one control-plane node; minor upgrades wait until this is given back
}
