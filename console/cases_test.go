// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/topology"
)

// The five modes, and two other values.
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
	return topology.Cluster{ControlPlane: topology.ReadingOf(controlPlane), Infrastructure: topology.ReadingOf(infrastructure)}
}

// eachTopology calls f with every pair of topologies, and whether there is one replica and whether it runs on workers.
func eachTopology(f func(controlPlane, infrastructure configv1.TopologyMode, single bool, onWorkers bool)) {
	for _, controlPlane := range allModes {
		for _, infrastructure := range allModes {
			f(controlPlane, infrastructure, controlPlane == sr || (controlPlane == external && infrastructure == sr), controlPlane == external)
		}
	}
}

func notReady() corev1.Toleration {
	return corev1.Toleration{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
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

// manifest is a Deployment of a release: two replicas that must not share a node.
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

func shaped(name string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	return manifest(name, append([]func(*appsv1.Deployment){func(d *appsv1.Deployment) {
		d.Spec.Replicas = ptr.To[int32](1)
		d.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "linux", "node-role.kubernetes.io/master": ""}
		d.Spec.Template.Spec.Affinity = nil
	}}, change...)...)
}
