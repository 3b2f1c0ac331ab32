package console_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/topology"
)

func TestMode(t *testing.T) {
	eachTopology(func(controlPlane, infrastructure configv1.TopologyMode, single, onWorkers bool) {
		cluster := clusterOf(controlPlane, infrastructure)
		wantReplicas, wantPool := int32(2), topology.ControlPlanePool
		if single {
			wantReplicas = 1
		}
		if onWorkers {
			wantPool = topology.WorkerPool
		}
		if got := console.Replicas(cluster); got != wantReplicas {
			t.Errorf("control plane %q, infrastructure %q: %d replicas, want %d", controlPlane, infrastructure, got, wantReplicas)
		}
		if got := console.Pool(cluster); got != wantPool {
			t.Errorf("control plane %q, infrastructure %q: pool %s, want %s", controlPlane, infrastructure, got, wantPool)
		}
	})
	for _, test := range []struct{ controlPlane, infrastructure, want configv1.TopologyMode }{
		{sr, ha, sr}, {ha, sr, ha}, {arbiter, sr, arbiter}, {dual, sr, dual}, {external, sr, sr}, {external, ha, ha}, {empty, sr, ha}, {unknown, sr, ha},
	} {
		if got := console.Mode(clusterOf(test.controlPlane, test.infrastructure)); got != test.want {
			t.Errorf("control plane %q, infrastructure %q: %q, want %q", test.controlPlane, test.infrastructure, got, test.want)
		}
	}
}

// The whole shape for every pair of topologies and both Deployments, against one written by hand.
func TestShapeDeployment(t *testing.T) {
	eachTopology(func(controlPlane, infrastructure configv1.TopologyMode, single, onWorkers bool) {
		for name, component := range map[string]string{"console": "ui", "downloads": "downloads"} {
			want := shaped(name)
			if !single {
				want.Spec.Replicas = ptr.To[int32](2)
				want.Spec.Strategy = strategy(intstr.FromInt32(1), intstr.FromInt32(1))
				terms := spread(component)
				terms[0].MatchLabelKeys = []string{"pod-template-hash"}
				want.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
			}
			if onWorkers {
				want.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
				want.Spec.Template.Spec.Tolerations = []corev1.Toleration{notReady()}
			}
			for from, start := range map[string]*appsv1.Deployment{"the manifest": manifest(name), "the shape of one node": shaped(name)} {
				before := start.DeepCopy()
				got := console.ShapeDeployment(start, clusterOf(controlPlane, infrastructure))
				if diff := cmp.Diff(before, start); diff != "" {
					t.Fatalf("the argument was changed:\n%s", diff)
				}
				if from == "the shape of one node" && !onWorkers {
					got.Spec.Template.Spec.Tolerations = want.Spec.Template.Spec.Tolerations
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s from %s, control plane %q, infrastructure %q (-want +got):\n%s", name, from, controlPlane, infrastructure, diff)
				}
				if again := console.ShapeDeployment(got, clusterOf(controlPlane, infrastructure)); !cmp.Equal(got, again) {
					t.Errorf("%s, control plane %q, infrastructure %q: shaping twice is not shaping once", name, controlPlane, infrastructure)
				}
			}
		}
	})
}

// What is not part of the shape stays, and nothing of the result is shared with the argument.
func TestShapeDeploymentLeavesTheRest(t *testing.T) {
	node := &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}}}
	together := &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 2}}}
	preferred := []corev1.WeightedPodAffinityTerm{{Weight: 3}}
	start := manifest("downloads", func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{"a": "b"}
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		d.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "linux", "disk": "ssd",
			"node-role.kubernetes.io/master": "", "node-role.kubernetes.io/control-plane": ""}
		d.Spec.Template.Spec.Affinity.NodeAffinity, d.Spec.Template.Spec.Affinity.PodAffinity = node, together
		d.Spec.Template.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = preferred
		d.Spec.Template.Spec.Tolerations = append(d.Spec.Template.Spec.Tolerations, corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists})
	})
	for _, mode := range allModes {
		got := console.ShapeDeployment(start, clusterOf(mode, mode)).Spec.Template.Spec
		if diff := cmp.Diff(node, got.Affinity.NodeAffinity); diff != "" {
			t.Errorf("%q: node affinity:\n%s", mode, diff)
		}
		if diff := cmp.Diff(together, got.Affinity.PodAffinity); diff != "" {
			t.Errorf("%q: pod affinity:\n%s", mode, diff)
		}
		if mode == sr && got.Affinity.PodAntiAffinity != nil {
			t.Errorf("anti-affinity on one node: %v", got.Affinity.PodAntiAffinity)
		}
		if got.NodeSelector["disk"] != "ssd" || got.NodeSelector["kubernetes.io/os"] != "linux" {
			t.Errorf("%q: selector %v", mode, got.NodeSelector)
		}
		if _, master := got.NodeSelector["node-role.kubernetes.io/master"]; master == (mode == external) {
			t.Errorf("%q: selector %v", mode, got.NodeSelector)
		}
		if _, controlPlane := got.NodeSelector["node-role.kubernetes.io/control-plane"]; mode == external && controlPlane {
			t.Errorf("%q: selector %v", mode, got.NodeSelector)
		}
		kept := map[string]bool{}
		for _, toleration := range got.Tolerations {
			kept[toleration.Key] = true
		}
		if !kept["dedicated"] || !kept["node.kubernetes.io/not-ready"] || kept["node-role.kubernetes.io/master"] == (mode == external) {
			t.Errorf("%q: tolerations %v", mode, got.Tolerations)
		}
	}
}

// A selector and tolerations agree: whatever is pinned tolerates the taints of where it is pinned to, and nothing else does.
func TestSelectorAndTolerationsAgree(t *testing.T) {
	bare := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.NodeSelector, d.Spec.Template.Spec.Tolerations = nil, nil
	}
	eachTopology(func(controlPlane, infrastructure configv1.TopologyMode, _, onWorkers bool) {
		pod := console.ShapeDeployment(manifest("console", bare), clusterOf(controlPlane, infrastructure)).Spec.Template.Spec
		wantSelector, wantTolerations := map[string]string{"node-role.kubernetes.io/master": ""}, []corev1.Toleration{role("master"), role("control-plane")}
		if onWorkers {
			wantSelector, wantTolerations = nil, nil
		}
		if diff := cmp.Diff(wantSelector, pod.NodeSelector) + cmp.Diff(wantTolerations, pod.Tolerations); diff != "" {
			t.Errorf("control plane %q, infrastructure %q (-want +got):\n%s", controlPlane, infrastructure, diff)
		}
	})
}

func TestShapeDeploymentEdges(t *testing.T) {
	if got := console.ShapeDeployment(nil, clusterOf(sr, sr)); got != nil {
		t.Errorf("nil became %v", got)
	}
	// Without labels of its own the anti-affinity must not keep console and downloads apart.
	for name, selector := range map[string]*metav1.LabelSelector{"none": nil, "empty": {}} {
		got := console.ShapeDeployment(manifest("downloads", func(d *appsv1.Deployment) { d.Spec.Selector = selector }), clusterOf(ha, ha))
		terms := spread("downloads")
		terms[0].MatchLabelKeys = []string{"pod-template-hash"}
		if diff := cmp.Diff(terms, got.Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution); diff != "" {
			t.Errorf("selector %s (-want +got):\n%s", name, diff)
		}
	}
	start := manifest("console")
	console.ShapeDeployment(start, clusterOf(ha, ha)).Spec.Template.Spec.Affinity.PodAntiAffinity.
		RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchLabels["app"] = "changed"
	if start.Spec.Selector.MatchLabels["app"] != "console" {
		t.Error("the shape shares the argument's labels")
	}
}

func TestPodDisruptionBudget(t *testing.T) {
	eachTopology(func(controlPlane, infrastructure configv1.TopologyMode, single, _ bool) {
		for name, component := range map[string]string{"console": "ui", "downloads": "downloads"} {
			want := &policyv1.PodDisruptionBudget{
				TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-console", Name: name},
				Spec: policyv1.PodDisruptionBudgetSpec{
					MaxUnavailable:             ptr.To(intstr.FromInt32(1)),
					Selector:                   &metav1.LabelSelector{MatchLabels: map[string]string{"app": "console", "component": component}},
					UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
				},
			}
			if single {
				want = nil
			}
			if diff := cmp.Diff(want, console.PodDisruptionBudget(name, clusterOf(controlPlane, infrastructure))); diff != "" {
				t.Errorf("%s, control plane %q, infrastructure %q (-want +got):\n%s", name, controlPlane, infrastructure, diff)
			}
		}
	})
}
