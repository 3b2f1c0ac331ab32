package auth_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/topology"
)

// How many control-plane nodes to wait for, and what to say about the old override.
func ExampleMinimumControlPlaneNodes() {
	single := clusterOf(configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode)
	minimum, err := auth.MinimumControlPlaneNodes(single, []byte(`{"useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer": "maybe"}`))
	fmt.Println(minimum.Nodes, err)
	fmt.Println(minimum.Unreadable)

	overrides := []byte(`useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer: "true"`)
	several := clusterOf(configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode)
	minimum, err = auth.MinimumControlPlaneNodes(several, overrides)
	fmt.Println(minimum.Nodes, err)
	fmt.Println(minimum.Override.Deprecation())
	// Output:
	// 1 <nil>
	// unreadable unsupportedConfigOverrides: spec.unsupportedConfigOverrides.useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer is "maybe"; want true or false, or remove it
	// 1 <nil>
	// The override useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer is deprecated: it is honored, but the topology decides without it; remove it
}

// An authentication operator shapes what it has rendered.
func ExampleShapeOAuthServer() {
	cluster, err := topology.FromInfrastructure(&configv1.Infrastructure{Status: configv1.InfrastructureStatus{
		ControlPlaneTopology: configv1.SingleReplicaTopologyMode, InfrastructureTopology: configv1.SingleReplicaTopologyMode,
	}})
	if err != nil {
		panic(err)
	}
	labels := map[string]string{"app": "oauth-openshift"}
	rendered := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
	}}
	host, err := auth.NewHost(cluster, 1)
	if err != nil {
		panic(err)
	}
	server, err := auth.ShapeOAuthServer(rendered, host)
	if err != nil {
		panic(err)
	}
	fmt.Println("replicas:", *server.Spec.Replicas)
	fmt.Println("unavailable:", server.Spec.Strategy.RollingUpdate.MaxUnavailable, "surge:", server.Spec.Strategy.RollingUpdate.MaxSurge)
	fmt.Println("selects:", server.Spec.Template.Spec.NodeSelector, "tolerations:", len(server.Spec.Template.Spec.Tolerations))
	fmt.Println("affinity:", server.Spec.Template.Spec.Affinity)
	budget, err := auth.OAuthServerPodDisruptionBudget(host, labels)
	fmt.Println("budget:", budget, err)
	// Output:
	// replicas: 1
	// unavailable: 0 surge: 1
	// selects: map[node-role.kubernetes.io/master:] tolerations: 2
	// affinity: nil
	// budget: nil <nil>
}

// The audit log has one writer per node, also where there is only one node.
func ExampleShapeOAuthAPIServer() {
	labels := map[string]string{"app": "openshift-oauth-apiserver"}
	rendered := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
	}}
	cluster, err := topology.FromInfrastructure(&configv1.Infrastructure{Status: configv1.InfrastructureStatus{
		ControlPlaneTopology: configv1.SingleReplicaTopologyMode, InfrastructureTopology: configv1.SingleReplicaTopologyMode,
	}})
	if err != nil {
		panic(err)
	}
	host, err := auth.NewHost(cluster, 1)
	if err != nil {
		panic(err)
	}
	server, err := auth.ShapeOAuthAPIServer(rendered, host)
	if err != nil {
		panic(err)
	}
	fmt.Println("unavailable:", server.Spec.Strategy.RollingUpdate.MaxUnavailable, "surge:", server.Spec.Strategy.RollingUpdate.MaxSurge)
	fmt.Println("apart:", server.Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey)
	// Output:
	// unavailable: 1 surge: 0
	// apart: kubernetes.io/hostname
}

// The only API server restarts. Each look gets the state of the one before.
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

// What to write beside a stock operator of a release that needs the override.
func ExampleDecideOverride() {
	cluster, err := topology.FromInfrastructure(&configv1.Infrastructure{Status: configv1.InfrastructureStatus{
		ControlPlaneTopology: configv1.SingleReplicaTopologyMode, InfrastructureTopology: configv1.SingleReplicaTopologyMode,
	}})
	if err != nil {
		panic(err)
	}
	decision := auth.DecideOverride(auth.Inputs{
		Cluster:        &cluster,
		Authentication: &operatorv1.Authentication{ObjectMeta: metav1.ObjectMeta{Name: auth.ConfigName}},
		ClusterVersion: &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{Desired: configv1.Release{Version: "4.7.13"}}},
	})
	spec, err := json.Marshal(decision.Intent.Spec)
	fmt.Println(string(spec), err)
	// Output:
	// {"unsupportedConfigOverrides":{"useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer":true}} <nil>
}
