// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/topology"
)

func ExampleShapeDeployment() {
	cluster := topology.Cluster{
		ControlPlane:   topology.ReadingOf(configv1.SingleReplicaTopologyMode),
		Infrastructure: topology.ReadingOf(configv1.HighlyAvailableTopologyMode),
	}
	manifest := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: console.Namespace, Name: console.ConsoleName}}
	manifest.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "console", "component": "ui"}}
	manifest.Spec.Template.Labels = manifest.Spec.Selector.MatchLabels
	shaped, err := console.ShapeDeployment(manifest, cluster)
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
	budget, err := console.PodDisruptionBudget(console.ConsoleName, cluster)
	fmt.Println("budget:", budget, err) // nil: delete an existing one
	// Output:
	// replicas: 1
	// unavailable: 25% surge: 25%
	// affinity: nil
	// selects: map[node-role.kubernetes.io/master:]
	// tolerates: node-role.kubernetes.io/master Exists NoSchedule
	// tolerates: node-role.kubernetes.io/control-plane Exists NoSchedule
	// budget: nil <nil>
}
