// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"encoding/json"
	"maps"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/topology"
)

const (
	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	arbiter  = configv1.HighlyAvailableArbiterMode
	dual     = configv1.DualReplicaTopologyMode
	external = configv1.ExternalTopologyMode
	empty    = configv1.TopologyMode("")
	unknown  = configv1.TopologyMode("Quantum")
	key      = "useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer"
)

var allModes = []configv1.TopologyMode{ha, arbiter, sr, dual, external, empty, unknown}

func clusterOf(controlPlane, infrastructure configv1.TopologyMode) topology.Cluster {
	return topology.Cluster{ControlPlane: topology.ReadingOf(controlPlane), Infrastructure: topology.ReadingOf(infrastructure)}
}

func must[T any](got T, err error) T {
	if err != nil {
		panic(err)
	}
	return got
}

// addOwner adds an owner to an object: the module by apply, others by update.
func addOwner(object metav1.Object, manager, fields string) {
	operation := metav1.ManagedFieldsOperationUpdate
	if manager == "sno.solonode.github.io/auth" {
		operation = metav1.ManagedFieldsOperationApply
	}
	object.SetManagedFields(append(object.GetManagedFields(), metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}))
}

func controlPlaneNode() corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"node-role.kubernetes.io/master": ""}}}
}

var (
	serverLabels    = map[string]string{"app": "oauth-openshift"}
	apiServerLabels = map[string]string{"app": "openshift-oauth-apiserver", "apiserver": "true"}
	master          = tolerate("node-role.kubernetes.io/master", corev1.TaintEffectNoSchedule)
	controlPlane    = tolerate("node-role.kubernetes.io/control-plane", corev1.TaintEffectNoSchedule)
	unreachable     = tolerate("node.kubernetes.io/unreachable", corev1.TaintEffectNoExecute)
)

func tolerate(key string, effect corev1.TaintEffect) corev1.Toleration {
	return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
}

func manifest(namespace, name string, labels map[string]string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "two", ResourceVersion: "1", Generation: 1}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: maps.Clone(labels)}
	d.Spec.Template.Labels = maps.Clone(labels)
	d.Spec.Template.Spec = corev1.PodSpec{
		Containers:   []corev1.Container{{Name: name, Image: name}},
		NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
		Tolerations:  []corev1.Toleration{unreachable},
	}
	addOwner(d, "gitops", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{}}}}}`)
	for _, f := range change {
		f(d)
	}
	return d
}

func server(change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	return manifest("openshift-authentication", "oauth-openshift", serverLabels, change...)
}

func apiServer(change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	return manifest("openshift-oauth-apiserver", "apiserver", apiServerLabels, change...)
}

func term(labels map[string]string, revisions ...string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, MatchLabelKeys: revisions, TopologyKey: "kubernetes.io/hostname",
	}
}

func antiAffinity(terms ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}

func text(t testing.TB, v any) string {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}
