// SPDX-License-Identifier: Apache-2.0

// Command console shapes the console's Deployment as a console operator does.
package main

import (
	"fmt"
	"log"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/topology"
)

func main() {
	cluster := topology.Cluster{
		ControlPlane:   topology.ReadingOf(configv1.SingleReplicaTopologyMode),
		Infrastructure: topology.ReadingOf(configv1.HighlyAvailableTopologyMode),
	}
	manifest := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: console.Namespace, Name: console.ConsoleName}}
	manifest.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "console", "component": "ui"}}
	manifest.Spec.Template.Labels = manifest.Spec.Selector.MatchLabels
	shaped, err := console.ShapeDeployment(manifest, cluster)
	if err != nil {
		log.Fatal(err)
	}
	budget, err := console.PodDisruptionBudget(console.ConsoleName, cluster)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*shaped.Spec.Replicas, budget)
}
