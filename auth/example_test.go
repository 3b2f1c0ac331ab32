// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/auth/internal/fixture"
)

func ExampleMinimumControlPlaneNodes() {
	single := fixture.ClusterOf(configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode)
	minimum, err := auth.MinimumControlPlaneNodes(single, []byte(`{"useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer": "maybe"}`))
	fmt.Println(minimum.Nodes, err)
	fmt.Println(minimum.Unreadable)

	overrides := []byte(`useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer: "true"`)
	several := fixture.ClusterOf(configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode)
	minimum, err = auth.MinimumControlPlaneNodes(several, overrides)
	fmt.Println(minimum.Nodes, err)
	fmt.Println(minimum.Deprecation)
	// Output:
	// 1 <nil>
	// unreadable unsupportedConfigOverrides: spec.unsupportedConfigOverrides.useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer is "maybe"; want true or false, or remove it
	// 1 <nil>
	// The override useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer is deprecated: it is honored, but the topology decides without it; remove it
}

func ExampleShapeOAuthServer() {
	cluster := fixture.ClusterOf(configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode)
	labels := map[string]string{"app": "oauth-openshift"}
	rendered := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
	}}
	server, err := auth.ShapeOAuthServer(rendered, cluster, 1)
	if err != nil {
		panic(err)
	}
	fmt.Println("replicas:", *server.Spec.Replicas)
	fmt.Println("unavailable:", server.Spec.Strategy.RollingUpdate.MaxUnavailable, "surge:", server.Spec.Strategy.RollingUpdate.MaxSurge)
	fmt.Println("selects:", server.Spec.Template.Spec.NodeSelector, "tolerations:", len(server.Spec.Template.Spec.Tolerations))
	fmt.Println("affinity:", server.Spec.Template.Spec.Affinity)
	budget, err := auth.OAuthServerPodDisruptionBudget(cluster, labels)
	fmt.Println("budget:", budget, err)
	// Output:
	// replicas: 1
	// unavailable: 0 surge: 1
	// selects: map[node-role.kubernetes.io/master:] tolerations: 2
	// affinity: nil
	// budget: nil <nil>
}

// The only API server restarts.
func ExampleWellKnownReadiness() {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	state := auth.WellKnownState{Available: true}
	for _, seconds := range []int{0, 119, 180} {
		at := now.Add(time.Duration(seconds) * time.Second)
		r := auth.WellKnownReadiness(configv1.SingleReplicaTopologyMode, []error{errors.New("connection refused")}, state, at)
		fmt.Println(seconds, r.Available, r.Progressing, r.Degraded, r.Reason)
		state = r.State
	}
	// Output:
	// 0 true true false APIServerRollingOut
	// 119 true true false APIServerRollingOut
	// 180 false false false WellKnownNotReady
}
