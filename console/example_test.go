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
	shaped := console.ShapeDeployment(manifest, singleNode())
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

// nil means that there must be no budget, and that one which is there should be deleted.
func ExamplePodDisruptionBudget() {
	two := singleNode()
	two.ControlPlane = topology.ReadingOf(configv1.DualReplicaTopologyMode)
	fmt.Println(console.PodDisruptionBudget(console.ConsoleName, singleNode()) == nil)
	fmt.Println(console.PodDisruptionBudget(console.ConsoleName, two).Spec.MaxUnavailable)
	// Output:
	// true
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
