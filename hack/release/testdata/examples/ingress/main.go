// SPDX-License-Identifier: Apache-2.0

// Command ingress shapes the router as an ingress operator does.
package main

import (
	"fmt"
	"log"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/topology"
)

func main() {
	cluster := topology.Cluster{
		ControlPlane:   topology.ReadingOf(configv1.SingleReplicaTopologyMode),
		Infrastructure: topology.ReadingOf(configv1.SingleReplicaTopologyMode),
		Platform:       configv1.NonePlatformType,
	}
	ic, err := ingress.DefaultIngressController(cluster, configv1.DefaultPlacementWorkers, ingress.PlacementFromTopology)
	if err != nil {
		log.Fatal(err)
	}
	host, err := ingress.NewHost(cluster, configv1.DefaultPlacementWorkers, ic)
	if err != nil {
		log.Fatal(err)
	}
	labels := map[string]string{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"}
	base := &appsv1.Deployment{}
	base.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	base.Spec.Template.Labels = labels
	router, err := ingress.ShapeRouter(base, host)
	if err != nil {
		log.Fatal(err)
	}
	budget, err := ingress.RouterPodDisruptionBudget(host, labels)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*router.Spec.Replicas, router.Spec.Template.Spec.NodeSelector, budget)
}
