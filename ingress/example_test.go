package ingress_test

import (
	"encoding/json"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/topology"
)

// singleNode is a cluster on platform None with one control-plane node. It may have workers; the topology does not tell.
func singleNode() topology.Cluster {
	return topology.Cluster{
		ControlPlane:   topology.ReadingOf(configv1.SingleReplicaTopologyMode),
		Infrastructure: topology.ReadingOf(configv1.SingleReplicaTopologyMode),
		Platform:       configv1.NonePlatformType,
	}
}

// What the controller applies to the IngressController of a stock operator.
func ExampleDecide() {
	cluster := singleNode()
	decision := ingress.Decide(ingress.Inputs{
		Cluster: &cluster,
		IngressController: &operatorv1.IngressController{
			ObjectMeta: metav1.ObjectMeta{Namespace: ingress.IngressControllerNamespace, Name: ingress.IngressControllerName},
		},
	})
	spec, err := json.MarshalIndent(decision.Intent.Spec, "", "  ")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(spec))
	// Output:
	// {
	//   "replicas": 1,
	//   "nodePlacement": {
	//     "nodeSelector": {
	//       "matchLabels": {
	//         "node-role.kubernetes.io/master": ""
	//       }
	//     },
	//     "tolerations": [
	//       {
	//         "key": "node-role.kubernetes.io/master",
	//         "operator": "Exists",
	//         "effect": "NoSchedule"
	//       },
	//       {
	//         "key": "node-role.kubernetes.io/control-plane",
	//         "operator": "Exists",
	//         "effect": "NoSchedule"
	//       }
	//     ]
	//   }
	// }
}

// Where the router belongs to the workers, the patch lets go, and says why.
func ExampleDecide_letsGo() {
	cluster := singleNode()
	cluster.Infrastructure = topology.ReadingOf(configv1.HighlyAvailableTopologyMode)
	decision := ingress.Decide(ingress.Inputs{
		Cluster: &cluster,
		IngressController: &operatorv1.IngressController{
			ObjectMeta: metav1.ObjectMeta{Namespace: ingress.IngressControllerNamespace, Name: ingress.IngressControllerName},
		},
	})
	fmt.Println(decision.Intent == nil, decision.Release)
	fmt.Println(decision.Result)
	// Output:
	// true true
	// NotNeeded (NotNeeded): The infrastructure topology is highly available: the router belongs to the workers
}

// An ingress operator that vendors this package creates the default IngressController like this.
func ExampleDefaultIngressController() {
	ic, err := ingress.DefaultIngressController(singleNode(), configv1.DefaultPlacementWorkers, ingress.PlacementFromTopology)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ic.Namespace, ic.Name)
	fmt.Println("selects:", ic.Spec.NodePlacement.NodeSelector.MatchLabels)
	for _, t := range ic.Spec.NodePlacement.Tolerations {
		fmt.Println("tolerates:", t.Key, t.Operator, t.Effect)
	}
	fmt.Println("replicas:", *ic.Spec.Replicas)
	// Output:
	// openshift-ingress-operator default
	// selects: map[node-role.kubernetes.io/master:]
	// tolerates: node-role.kubernetes.io/master Exists NoSchedule
	// tolerates: node-role.kubernetes.io/control-plane Exists NoSchedule
	// replicas: 1
}

// And it shapes its router like this: here one router on one node, with host ports.
func ExampleShapeRouter() {
	cluster := singleNode()
	ic, err := ingress.DefaultIngressController(cluster, "", ingress.PlacementFromTopology)
	if err != nil {
		fmt.Println(err)
		return
	}
	host, err := ingress.NewHost(cluster, "", ic)
	if err != nil {
		fmt.Println(err) // such as a node selector that the stock operator refuses as well
		return
	}
	labels := map[string]string{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"}
	router, err := ingress.ShapeRouter(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
	}}, host)
	if err != nil {
		fmt.Println(err)
		return
	}
	budget, err := ingress.RouterPodDisruptionBudget(host, labels)
	if err != nil {
		fmt.Println(err)
		return
	}

	fmt.Println("replicas:", *router.Spec.Replicas)
	fmt.Println("unavailable:", router.Spec.Strategy.RollingUpdate.MaxUnavailable, "surge:", router.Spec.Strategy.RollingUpdate.MaxSurge)
	fmt.Println("selects:", router.Spec.Template.Spec.NodeSelector)
	fmt.Println("tolerations:", len(router.Spec.Template.Spec.Tolerations))
	fmt.Println("affinity:", router.Spec.Template.Spec.Affinity)
	fmt.Println("budget:", budget)
	// Output:
	// replicas: 1
	// unavailable: 1 surge: 0
	// selects: map[node-role.kubernetes.io/master:]
	// tolerations: 2
	// affinity: nil
	// budget: nil
}
