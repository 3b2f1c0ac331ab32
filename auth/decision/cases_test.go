// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/auth/decision"
	"github.com/solonode/sno/patch"
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

	key = "useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer"
)

var allModes = []configv1.TopologyMode{ha, arbiter, sr, dual, external, empty, unknown}

func clusterOf(controlPlane, infrastructure configv1.TopologyMode) topology.Cluster {
	return topology.Cluster{ControlPlane: topology.ReadingOf(controlPlane), Infrastructure: topology.ReadingOf(infrastructure)}
}

// addOwner adds an owner to an object: the module by apply, others by update.
func addOwner(object metav1.Object, manager, fields string) {
	operation := metav1.ManagedFieldsOperationUpdate
	if manager == decision.FieldOwner {
		operation = metav1.ManagedFieldsOperationApply
	}
	object.SetManagedFields(append(object.GetManagedFields(), metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}))
}

func authenticationOwnedBy(manager, fields string) func(*operatorv1.Authentication) {
	return func(a *operatorv1.Authentication) { addOwner(a, manager, fields) }
}

func deploymentOwnedBy(manager, fields string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { addOwner(d, manager, fields) }
}

func optOut[T metav1.Object](object T) {
	object.SetAnnotations(map[string]string{patch.OptOutAnnotation: "console, auth"})
}

func deleted[T metav1.Object](object T) {
	object.SetDeletionTimestamp(ptr.To(metav1.NewTime(time.Unix(1, 0))))
}

// managedFields of a field without a schema, by key or as one value.
const (
	perKey   = `{"f:spec":{"f:unsupportedConfigOverrides":{"f:` + key + `":{}}}}`
	perOther = `{"f:spec":{"f:unsupportedConfigOverrides":{"f:oauthConfig":{}}}}`
	asOne    = `{"f:spec":{"f:unsupportedConfigOverrides":{}}}`
)

// overrideInputs are of a single node whose release needs the override.
func overrideInputs(overrides string, change ...func(*operatorv1.Authentication)) decision.Inputs {
	a := &operatorv1.Authentication{ObjectMeta: metav1.ObjectMeta{Name: "cluster", UID: "one", ResourceVersion: "1"}}
	a.Spec.UnsupportedConfigOverrides.Raw = []byte(overrides)
	addOwner(a, "cluster-version-operator", `{"f:spec":{"f:managementState":{}}}`)
	for _, f := range change {
		f(a)
	}
	return decision.Inputs{Cluster: ptr.To(clusterOf(sr, sr)), Authentication: a, ClusterVersion: running("4.7.13")}
}

func running(release string) *configv1.ClusterVersion {
	return &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{Desired: configv1.Release{Version: release}}}
}

func controlPlaneNode() corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"node-role.kubernetes.io/master": ""}}}
}

func deploymentInputs(controlPlane, infrastructure configv1.TopologyMode, nodes int, server, apiServer *appsv1.Deployment) decision.Inputs {
	in := decision.Inputs{Cluster: ptr.To(clusterOf(controlPlane, infrastructure)), OAuthServer: server, OAuthAPIServer: apiServer}
	for range nodes {
		in.ControlPlaneNodes = append(in.ControlPlaneNodes, controlPlaneNode())
	}
	return in
}

var (
	serverLabels    = map[string]string{"app": "oauth-openshift"}
	apiServerLabels = map[string]string{"app": "openshift-oauth-apiserver", "apiserver": "true"}

	unreachable = tolerate("node.kubernetes.io/unreachable", corev1.TaintEffectNoExecute)
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

func text(t testing.TB, v any) string {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}
