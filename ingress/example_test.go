// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/topology"
)

func singleNode() topology.Cluster {
	return topology.Cluster{
		ControlPlane:   topology.ReadingOf(configv1.SingleReplicaTopologyMode),
		Infrastructure: topology.ReadingOf(configv1.SingleReplicaTopologyMode),
		Platform:       configv1.NonePlatformType,
	}
}

func ExampleShapeRouter() {
	cluster := singleNode()
	ic, err := ingress.DefaultIngressController(cluster, configv1.DefaultPlacementWorkers, ingress.PlacementFromTopology)
	if err != nil {
		fmt.Println(err)
		return
	}
	host, err := ingress.NewHost(cluster, configv1.DefaultPlacementWorkers, ic)
	if err != nil {
		fmt.Println(err)
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

	update := router.Spec.Strategy.RollingUpdate
	fmt.Println("replicas:", *router.Spec.Replicas, "unavailable:", update.MaxUnavailable, "surge:", update.MaxSurge)
	fmt.Println("selects:", router.Spec.Template.Spec.NodeSelector)
	for _, t := range router.Spec.Template.Spec.Tolerations {
		fmt.Println("tolerates:", t.Key, t.Operator, t.Effect)
	}
	fmt.Println("affinity:", router.Spec.Template.Spec.Affinity, "budget:", budget)
	// Output:
	// replicas: 1 unavailable: 25% surge: 0
	// selects: map[node-role.kubernetes.io/master:]
	// tolerates: node-role.kubernetes.io/master Exists NoSchedule
	// tolerates: node-role.kubernetes.io/control-plane Exists NoSchedule
	// affinity: nil budget: nil
}

func ExampleHost_WithSharedHostPorts() {
	cluster := singleNode()
	host, err := ingress.NewHost(cluster, "", &operatorv1.IngressController{})
	if err != nil {
		fmt.Println(err)
		return
	}
	router := &appsv1.Deployment{}
	router.Spec.Template.Spec = corev1.PodSpec{
		HostNetwork: true,
		Containers: []corev1.Container{{
			Name: "router", Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: 443}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"ready"}}}},
		}},
	}
	for _, host := range []ingress.Host{host, host.WithSharedHostPorts()} {
		shaped, err := ingress.ShapeRouter(router, host)
		if err != nil {
			fmt.Println(err)
			return
		}
		update := shaped.Spec.Strategy.RollingUpdate
		fmt.Println("unavailable:", update.MaxUnavailable, "surge:", update.MaxSurge, "ports:", len(shaped.Spec.Template.Spec.Containers[0].Ports))
	}
	// Output:
	// unavailable: 25% surge: 0 ports: 1
	// unavailable: 25% surge: 25% ports: 0
}
