package console_test

import (
	"encoding/json"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/console"
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

func clusterOf(controlPlane, infrastructure configv1.TopologyMode) topology.Cluster {
	return topology.Cluster{
		ControlPlane: topology.ReadingOf(controlPlane), Infrastructure: topology.ReadingOf(infrastructure), Platform: configv1.NonePlatformType,
	}
}

// eachTopology calls f with every pair of topologies, the one that decides and the pool, by the rule and not by the code.
func eachTopology(f func(controlPlane, infrastructure configv1.TopologyMode, single bool, onWorkers bool)) {
	for _, controlPlane := range allModes {
		for _, infrastructure := range allModes {
			f(controlPlane, infrastructure, controlPlane == sr || (controlPlane == external && infrastructure == sr), controlPlane == external)
		}
	}
}

const cvo, stock, person, us = "cluster-version-operator", "console", "oc", "sno.solonode.github.io/console"

// What the managers own, as the API server writes it.
const (
	shapeJSON = `{"f:spec":{"f:replicas":{},"f:strategy":{"f:type":{},"f:rollingUpdate":{"f:maxSurge":{},"f:maxUnavailable":{}}},` +
		`"f:template":{"f:spec":{"f:nodeSelector":{},"f:tolerations":{}}}}}`
	manifestJSON = `{"f:spec":{"f:replicas":{},"f:strategy":{"f:type":{},"f:rollingUpdate":{"f:maxSurge":{},"f:maxUnavailable":{}}},` +
		`"f:template":{"f:spec":{"f:containers":{},"f:nodeSelector":{},"f:tolerations":{},` +
		`"f:affinity":{"f:podAntiAffinity":{"f:requiredDuringSchedulingIgnoredDuringExecution":{}}}}}}}`
	replicasJSON   = `{"f:spec":{"f:replicas":{}}}`
	containersJSON = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{}}}}}`
	overrideJSON   = `{"f:spec":{"f:overrides":{"k:{\"group\":\"apps\",\"kind\":\"Deployment\",\"name\":\"downloads\",\"namespace\":\"openshift-console\"}":` +
		`{".":{},"f:group":{},"f:kind":{},"f:name":{},"f:namespace":{},"f:unmanaged":{}}}}}`
	unmanagedJSON = `{"f:spec":{"f:overrides":{"k:{\"group\":\"apps\",\"kind\":\"Deployment\",\"name\":\"downloads\",\"namespace\":\"openshift-console\"}":` +
		`{"f:unmanaged":{}}}}}`
	keysJSON = `{"f:spec":{"f:overrides":{"k:{\"group\":\"apps\",\"kind\":\"Deployment\",\"name\":\"downloads\",\"namespace\":\"openshift-console\"}":` +
		`{".":{},"f:group":{},"f:kind":{},"f:name":{},"f:namespace":{}}}}}`
	wholeListJSON = `{"f:spec":{"f:overrides":{}}}`
)

func entry(manager, fields string) metav1.ManagedFieldsEntry {
	operation := metav1.ManagedFieldsOperationUpdate
	if manager == us {
		operation = metav1.ManagedFieldsOperationApply
	}
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
}

func ownedBy(manager, fields string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.ManagedFields = append(d.ManagedFields, entry(manager, fields)) }
}

func notReady() corev1.Toleration {
	return corev1.Toleration{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](120)}
}

func role(key string) corev1.Toleration {
	return corev1.Toleration{Key: "node-role.kubernetes.io/" + key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
}

func strategy(unavailable, surge intstr.IntOrString) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &unavailable, MaxSurge: &surge}}
}

func spread(component string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "console", "component": component}},
		TopologyKey:   "kubernetes.io/hostname",
	}}
}

// manifest is a Deployment as a release brings it: two replicas that must not share a node.
func manifest(name string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	component := map[string]string{"console": "ui", "downloads": "downloads"}[name]
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-console", Name: name, UID: "one", Generation: 1}}
	d.Spec.Replicas = ptr.To[int32](2)
	d.Spec.Strategy = strategy(intstr.FromString("25%"), intstr.FromString("25%"))
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "console", "component": component}}
	d.Spec.Template.Labels = map[string]string{"app": "console", "component": component}
	d.Spec.Template.Spec = corev1.PodSpec{
		Containers:   []corev1.Container{{Name: "server", Image: "server"}},
		NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
		Tolerations:  []corev1.Toleration{role("master"), notReady()},
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: spread(component)}},
	}
	for _, f := range change {
		f(d)
	}
	return d
}

// shaped is the Deployment as this module leaves it on one node, by hand.
func shaped(name string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	return manifest(name, append([]func(*appsv1.Deployment){func(d *appsv1.Deployment) {
		d.Spec.Replicas = ptr.To[int32](1)
		d.Spec.Strategy = strategy(intstr.FromInt32(0), intstr.FromInt32(1))
		d.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "linux", "node-role.kubernetes.io/master": ""}
		d.Spec.Template.Spec.Tolerations = []corev1.Toleration{role("master"), notReady(), role("control-plane")}
		d.Spec.Template.Spec.Affinity = nil
	}}, change...)...)
}

// stockShape is what a console operator that knows topology makes on one node.
func stockShape(name string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	return manifest(name, append([]func(*appsv1.Deployment){func(d *appsv1.Deployment) {
		d.Spec.Replicas = ptr.To[int32](1)
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{}
	}, ownedBy(stock, manifestJSON)}, change...)...)
}

func theEntry(unmanaged bool) configv1.ComponentOverride {
	return configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: "openshift-console", Name: "downloads", Unmanaged: unmanaged}
}

func otherEntry() configv1.ComponentOverride {
	return configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: "openshift-dns-operator", Name: "dns-operator", Unmanaged: true}
}

// version is the ClusterVersion with these overrides, seen by the cluster-version-operator.
func version(overrides ...configv1.ComponentOverride) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version", UID: "cv", Generation: 3}}
	cv.Spec.Overrides = overrides
	cv.Status.ObservedGeneration = 3
	cv.ManagedFields = []metav1.ManagedFieldsEntry{entry("cluster-bootstrap", `{"f:spec":{"f:clusterID":{}}}`)}
	return cv
}

func signed(cv *configv1.ClusterVersion, manager, fields string) *configv1.ClusterVersion {
	cv.ManagedFields = append(cv.ManagedFields, entry(manager, fields))
	return cv
}

func unobserved(cv *configv1.ClusterVersion) *configv1.ClusterVersion {
	cv.Generation++
	return cv
}

// inputs are those of one node on which a release that does not know topology has just been installed.
func inputs(change ...func(*console.Inputs)) console.Inputs {
	cluster := clusterOf(sr, sr)
	in := console.Inputs{
		Cluster: &cluster, ClusterVersion: version(),
		Console:   manifest("console", ownedBy("installer", containersJSON)),
		Downloads: manifest("downloads", ownedBy(cvo, manifestJSON)),
	}
	for _, f := range change {
		f(&in)
	}
	return in
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

func modeOf(name string) configv1.TopologyMode {
	return map[string]configv1.TopologyMode{"sr": sr, "ha": ha, "arbiter": arbiter, "dual": dual, "external": external, "unknown": unknown}[name]
}
