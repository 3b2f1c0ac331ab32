package auth_test

import (
	"encoding/json"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/topology"
)

// The five modes, and what else a field can say.
const (
	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	arbiter  = configv1.HighlyAvailableArbiterMode
	dual     = configv1.DualReplicaTopologyMode
	external = configv1.ExternalTopologyMode
	empty    = configv1.TopologyMode("")
	unknown  = configv1.TopologyMode("Quantum")
)

var allModes = []configv1.TopologyMode{ha, arbiter, sr, dual, external, empty, unknown}

// key is written out, so that a renamed constant is noticed.
const key = "useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer"

func clusterOf(controlPlane, infrastructure configv1.TopologyMode) topology.Cluster {
	return topology.Cluster{ControlPlane: topology.ReadingOf(controlPlane), Infrastructure: topology.ReadingOf(infrastructure)}
}

func modeOf(name string) configv1.TopologyMode { return configv1.TopologyMode(name) }

func hostOf(t testing.TB, controlPlane, infrastructure configv1.TopologyMode, nodes int32) auth.Host {
	t.Helper()
	return must[auth.Host](t)(auth.NewHost(clusterOf(controlPlane, infrastructure), nodes))
}

// must is what a function returned beside an error that should be nil.
func must[T any](t testing.TB) func(T, error) T {
	t.Helper()
	return func(got T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
}

func entry(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}
}

// signed adds an owner to an object: ourselves by apply, anybody else by update.
func signed(object metav1.Object, manager, fields string) {
	operation := metav1.ManagedFieldsOperationUpdate
	if manager == auth.FieldOwner {
		operation = metav1.ManagedFieldsOperationApply
	}
	object.SetManagedFields(append(object.GetManagedFields(), entry(manager, operation, fields)))
}

// The two ways in which the managedFields can tell of a key of a field without a schema.
const (
	perKey   = `{"f:spec":{"f:unsupportedConfigOverrides":{"f:` + key + `":{}}}}`
	perOther = `{"f:spec":{"f:unsupportedConfigOverrides":{"f:oauthConfig":{}}}}`
	asOne    = `{"f:spec":{"f:unsupportedConfigOverrides":{}}}`
)

// liveAuthentication is the operator's Authentication, made by the installation, with overrides.
func liveAuthentication(overrides string, change ...func(*operatorv1.Authentication)) *operatorv1.Authentication {
	a := &operatorv1.Authentication{ObjectMeta: metav1.ObjectMeta{Name: "cluster", UID: "one", ResourceVersion: "1"}}
	a.Spec.UnsupportedConfigOverrides.Raw = []byte(overrides)
	signed(a, "cluster-version-operator", `{"f:spec":{"f:managementState":{}}}`)
	for _, f := range change {
		f(a)
	}
	return a
}

func authenticationOwnedBy(manager, fields string) func(*operatorv1.Authentication) {
	return func(a *operatorv1.Authentication) { signed(a, manager, fields) }
}

// overrideInputs are those of a single node whose release needs the override.
func overrideInputs(overrides string, change ...func(*operatorv1.Authentication)) auth.Inputs {
	cluster := clusterOf(sr, sr)
	return auth.Inputs{Cluster: &cluster, Authentication: liveAuthentication(overrides, change...), ClusterVersion: running("4.7.13")}
}

// running is a cluster that runs the release.
func running(release string) *configv1.ClusterVersion {
	return &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{Desired: configv1.Release{Version: release}}}
}

// controlPlaneNode is one with the master role.
func controlPlaneNode(change ...func(*corev1.Node)) corev1.Node {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"node-role.kubernetes.io/master": ""}}}
	for _, f := range change {
		f(&node)
	}
	return node
}

var (
	serverLabels    = map[string]string{"app": "oauth-openshift"}
	apiServerLabels = map[string]string{"app": "openshift-oauth-apiserver", "apiserver": "true"}

	master       = corev1.Toleration{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	controlPlane = corev1.Toleration{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	unreachable  = corev1.Toleration{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](120)}
)

// manifest is a Deployment before it is shaped. The API server has put its defaults in.
func manifest(namespace, name string, labels map[string]string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "two", ResourceVersion: "1", Generation: 1}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{}}
	d.Spec.Template.Labels = map[string]string{}
	for k, v := range labels {
		d.Spec.Selector.MatchLabels[k], d.Spec.Template.Labels[k] = v, v
	}
	d.Spec.Template.Spec = corev1.PodSpec{
		Containers:   []corev1.Container{{Name: name, Image: name}},
		NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
		Tolerations:  []corev1.Toleration{unreachable},
	}
	signed(d, "gitops", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{}}}}}`)
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

func shapedServer(t testing.TB, d *appsv1.Deployment, host auth.Host) *appsv1.Deployment {
	t.Helper()
	return must[*appsv1.Deployment](t)(auth.ShapeOAuthServer(d, host))
}

func shapedAPIServer(t testing.TB, d *appsv1.Deployment, host auth.Host) *appsv1.Deployment {
	t.Helper()
	return must[*appsv1.Deployment](t)(auth.ShapeOAuthAPIServer(d, host))
}

func deploymentOwnedBy(manager, fields string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { signed(d, manager, fields) }
}

// term keeps pods away from those with the labels.
func term(labels map[string]string, revisions ...string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, MatchLabelKeys: revisions, TopologyKey: "kubernetes.io/hostname",
	}
}

func antiAffinity(terms ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}

// text is the canonical text of anything, so that "the same bytes" can be said.
func text(t testing.TB, v any) string {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}
