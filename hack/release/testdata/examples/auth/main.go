// SPDX-License-Identifier: Apache-2.0

// Command auth shapes the OAuth server as an authentication operator does.
package main

import (
	"fmt"
	"log"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/topology"
)

func main() {
	cluster := topology.Cluster{
		ControlPlane:   topology.ReadingOf(configv1.SingleReplicaTopologyMode),
		Infrastructure: topology.ReadingOf(configv1.SingleReplicaTopologyMode),
	}
	minimum, err := auth.MinimumControlPlaneNodes(cluster, nil)
	if err != nil {
		log.Fatal(err)
	}
	labels := map[string]string{"app": "oauth-openshift"}
	base := &appsv1.Deployment{}
	base.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	base.Spec.Template.Labels = labels
	server, err := auth.ShapeOAuthServer(base, cluster, minimum.Nodes)
	if err != nil {
		log.Fatal(err)
	}
	budget, err := auth.OAuthServerPodDisruptionBudget(cluster, labels)
	if err != nil {
		log.Fatal(err)
	}
	readiness := auth.WellKnownReadiness(cluster.ControlPlane.Mode, []error{nil}, auth.WellKnownState{}, time.Now())
	fmt.Println(minimum.Nodes, *server.Spec.Replicas, budget, readiness.Available)
}
