package console_test

import (
	"encoding/json"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/topology"
)

// singleNode is a cluster with one control-plane node. It may have workers; the console does not run on those.
func singleNode() topology.Cluster {
	return topology.Cluster{
		ControlPlane:   topology.ReadingOf(configv1.SingleReplicaTopologyMode),
		Infrastructure: topology.ReadingOf(configv1.HighlyAvailableTopologyMode),
	}
}

// A console operator shapes what it reads from its manifest, just before it applies it.
func ExampleShapeDeployment() {
	manifest := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: console.Namespace, Name: console.ConsoleName}}
	manifest.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "console", "component": "ui"}}
	manifest.Spec.Template.Labels = manifest.Spec.Selector.MatchLabels
	shaped, err := console.ShapeDeployment(manifest, singleNode())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("replicas:", *shaped.Spec.Replicas)
	fmt.Println("unavailable:", shaped.Spec.Strategy.RollingUpdate.MaxUnavailable, "surge:", shaped.Spec.Strategy.RollingUpdate.MaxSurge)
	fmt.Println("affinity:", shaped.Spec.Template.Spec.Affinity)
	fmt.Println("selects:", shaped.Spec.Template.Spec.NodeSelector)
	for _, t := range shaped.Spec.Template.Spec.Tolerations {
		fmt.Println("tolerates:", t.Key, t.Operator, t.Effect)
	}
	// Output:
	// replicas: 1
	// unavailable: 0 surge: 1
	// affinity: nil
	// selects: map[node-role.kubernetes.io/master:]
	// tolerates: node-role.kubernetes.io/master Exists NoSchedule
	// tolerates: node-role.kubernetes.io/control-plane Exists NoSchedule
}

// A cluster with two control-plane nodes gets what the stock operator gives it.
func ExampleDeploymentStrategy() {
	two := singleNode()
	two.ControlPlane = topology.ReadingOf(configv1.DualReplicaTopologyMode)
	for _, cluster := range []topology.Cluster{singleNode(), two, {}} {
		strategy, err := console.DeploymentStrategy(cluster)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println("unavailable:", strategy.RollingUpdate.MaxUnavailable, "surge:", strategy.RollingUpdate.MaxSurge)
	}
	// Output:
	// unavailable: 0 surge: 1
	// unavailable: 1 surge: 3
	// no topology: read the Cluster with topology.FromInfrastructure: mode ""
}

// nil means that the pods may share a node.
func ExampleDeploymentAntiAffinity() {
	two := singleNode()
	two.ControlPlane = topology.ReadingOf(configv1.DualReplicaTopologyMode)
	for _, cluster := range []topology.Cluster{singleNode(), two} {
		apart, err := console.DeploymentAntiAffinity(cluster, map[string]string{"app": "console", "component": "ui"})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(apart != nil)
	}
	// Output:
	// false
	// true
}

// nil means that there must be no budget, and that one which is there should be deleted.
func ExamplePodDisruptionBudget() {
	two := singleNode()
	two.ControlPlane = topology.ReadingOf(configv1.DualReplicaTopologyMode)
	for _, cluster := range []topology.Cluster{singleNode(), two} {
		budget, err := console.PodDisruptionBudget(console.ConsoleName, cluster)
		if err != nil {
			fmt.Println(err)
			return
		}
		if budget == nil {
			fmt.Println("none")
			continue
		}
		fmt.Println(budget.Spec.MaxUnavailable)
	}
	// Output:
	// none
	// 1
}

// The first step of taking downloads over: the cluster-version-operator is told to let go. The Deployment is not touched yet.
func ExampleDecide() {
	cluster := singleNode()
	decision := console.Decide(console.Inputs{
		Cluster:        &cluster,
		ClusterVersion: &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: console.ClusterVersionName}},
		Downloads: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: console.Namespace, Name: console.DownloadsName,
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: console.ClusterVersionOperator, Operation: metav1.ManagedFieldsOperationUpdate}},
		}},
	})
	spec, err := json.Marshal(decision.ClusterVersion.Intent.Spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(spec))
	fmt.Println(decision.Downloads.Intent == nil)
	fmt.Println(decision.Downloads.Result)
	// Output:
	// {"overrides":[{"kind":"Deployment","group":"apps","namespace":"openshift-console","name":"downloads","unmanaged":true}]}
	// true
	// Progressing (TakingOver): Telling the cluster-version-operator to let go of downloads; minor upgrades wait until this is given back
}

// Other people's entries stay where they are.
func ExampleAddOverride() {
	list := []configv1.ComponentOverride{{Kind: "Deployment", Group: "apps", Namespace: "openshift-dns-operator", Name: "dns-operator", Unmanaged: true}}
	added, err := console.AddOverride(list)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, entry := range added {
		fmt.Println(entry.Name, entry.Unmanaged)
	}
	fmt.Println(len(console.RemoveOverride(added)))
	// Output:
	// dns-operator true
	// downloads true
	// 1
}
