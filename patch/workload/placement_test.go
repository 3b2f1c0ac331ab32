// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/patch/workload"
	"github.com/solonode/sno/topology"
)

func TestPlace(t *testing.T) {
	const master, controlPlane, worker = "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/worker"
	own := corev1.Toleration{Key: "disk", Operator: corev1.TolerationOpExists}
	evicted := corev1.Toleration{
		Key: master, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](120),
	}
	onMaster := corev1.Toleration{Key: master, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	onControlPlane := corev1.Toleration{Key: controlPlane, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	type (
		selector    = map[string]string
		tolerations = []corev1.Toleration
	)
	for name, test := range map[string]struct {
		pod, want corev1.PodSpec
		pool      topology.Pool
	}{
		"empty": {
			corev1.PodSpec{},
			corev1.PodSpec{NodeSelector: selector{master: ""}, Tolerations: tolerations{onMaster, onControlPlane}}, topology.ControlPlanePool,
		},
		"from workers to the control plane": {
			corev1.PodSpec{NodeSelector: selector{worker: "", "disk": "fast"}, Tolerations: tolerations{own}},
			corev1.PodSpec{NodeSelector: selector{master: "", "disk": "fast"}, Tolerations: tolerations{own, onMaster, onControlPlane}},
			topology.ControlPlanePool,
		},
		"on the control plane, in another order": {
			corev1.PodSpec{NodeSelector: selector{master: ""}, Tolerations: tolerations{onControlPlane, own, onMaster}},
			corev1.PodSpec{NodeSelector: selector{master: ""}, Tolerations: tolerations{onControlPlane, own, onMaster}}, topology.ControlPlanePool,
		},
		"to the workers": {
			corev1.PodSpec{NodeSelector: selector{master: "", controlPlane: ""}, Tolerations: tolerations{onMaster, own, onControlPlane}},
			corev1.PodSpec{NodeSelector: selector{worker: ""}, Tolerations: tolerations{own}}, topology.WorkerPool,
		},
		"tolerates the master taint until evicted, to the control plane": {
			corev1.PodSpec{NodeSelector: selector{master: ""}, Tolerations: tolerations{evicted}},
			corev1.PodSpec{NodeSelector: selector{master: ""}, Tolerations: tolerations{evicted, onMaster, onControlPlane}},
			topology.ControlPlanePool,
		},
		"tolerates the master taint until evicted, to the workers": {
			corev1.PodSpec{NodeSelector: selector{master: ""}, Tolerations: tolerations{onMaster, evicted, onControlPlane}},
			corev1.PodSpec{NodeSelector: selector{worker: ""}, Tolerations: tolerations{evicted}}, topology.WorkerPool,
		},
	} {
		for _, pass := range []string{"once", "twice"} {
			workload.Place(&test.pod, test.pool)
			if diff := cmp.Diff(test.want, test.pod); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, pass, diff)
			}
		}
	}
	if got := workload.Tolerations(topology.PlacementOf(topology.WorkerPool)); got != nil {
		t.Errorf("workers: %v, want no tolerations", got)
	}
	present := []corev1.Toleration{onMaster, own, onControlPlane}
	workload.Tolerate(present, topology.WorkerPool)
	if diff := cmp.Diff([]corev1.Toleration{onMaster, own, onControlPlane}, present); diff != "" {
		t.Errorf("Tolerate changed its argument (-want +got):\n%s", diff)
	}
}

func TestSeparate(t *testing.T) {
	term := func(labels map[string]string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: corev1.LabelHostname}
	}
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn,
		Values: []string{"console"}}}}
	stock, others := term(map[string]string{"component": "ui"}), term(map[string]string{"app": "noisy"})
	nodes := &corev1.NodeAffinity{}
	deployment := func() *appsv1.Deployment {
		return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
			Selector: selector,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "console", "component": "ui"}},
				Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: nodes, PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{stock, others},
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
						{Weight: 1, PodAffinityTerm: stock}, {Weight: 2, PodAffinityTerm: others},
					},
				}}},
			},
		}}
	}
	apart := corev1.PodAffinityTerm{LabelSelector: selector, TopologyKey: corev1.LabelHostname}
	perRevision := apart
	perRevision.MatchLabelKeys = []string{"pod-template-hash"}
	for separation, required := range map[workload.Separation][]corev1.PodAffinityTerm{
		workload.SeparateNever: {others}, workload.SeparatePerRevision: {others, perRevision}, workload.SeparateAlways: {others, apart},
	} {
		want := &corev1.Affinity{NodeAffinity: nodes, PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  required,
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 2, PodAffinityTerm: others}},
		}}
		d := deployment()
		for _, pass := range []string{"once", "twice"} {
			workload.Separate(d, separation)
			if diff := cmp.Diff(want, d.Spec.Template.Spec.Affinity); diff != "" {
				t.Errorf("%d, %s (-want +got):\n%s", separation, pass, diff)
			}
		}
	}
	bare := &appsv1.Deployment{}
	workload.Separate(bare, workload.SeparateAlways)
	if bare.Spec.Template.Spec.Affinity != nil {
		t.Errorf("without a selector there is nothing to select by, got %v", bare.Spec.Template.Spec.Affinity)
	}
	for name, affinity := range map[string]*corev1.Affinity{
		"the last term": {PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{stock}}},
		"an empty rule": {PodAntiAffinity: &corev1.PodAntiAffinity{}},
		"nothing":       {},
	} {
		last := deployment()
		last.Spec.Template.Spec.Affinity = affinity
		workload.Separate(last, workload.SeparateNever)
		if last.Spec.Template.Spec.Affinity != nil {
			t.Errorf("%s: an empty affinity should be none, got %v", name, last.Spec.Template.Spec.Affinity)
		}
	}
}

// Terms that separate the Deployment's own pods are removed; others stay.
func TestSeparateTakes(t *testing.T) {
	own := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "router"}}
	expression := func(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	expressions := func(expressions ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: expressions}
	}
	namespaceName := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": name}}
	}
	const hash = "ingresscontroller.operator.openshift.io/hash"
	for name, test := range map[string]struct {
		term    corev1.PodAffinityTerm
		removed bool
	}{
		"own pods":                    {corev1.PodAffinityTerm{LabelSelector: own}, true},
		"own pods of a revision":      {corev1.PodAffinityTerm{LabelSelector: own, MatchLabelKeys: []string{"pod-template-hash"}}, true},
		"own pods of other revisions": {corev1.PodAffinityTerm{LabelSelector: own, MismatchLabelKeys: []string{"pod-template-hash"}}, true},
		"all pods":                    {corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{}}, true},
		"no pods":                     {corev1.PodAffinityTerm{}, false},
		"other pods":                  {corev1.PodAffinityTerm{LabelSelector: namespaceName("x")}, false},
		"own pods by zone":            {corev1.PodAffinityTerm{LabelSelector: own, TopologyKey: corev1.LabelTopologyZone}, false},
		"own namespace by name":       {corev1.PodAffinityTerm{LabelSelector: own, Namespaces: []string{"other", "own"}}, true},
		"another namespace by name":   {corev1.PodAffinityTerm{LabelSelector: own, Namespaces: []string{"other"}}, false},
		"all namespaces":              {corev1.PodAffinityTerm{LabelSelector: own, NamespaceSelector: &metav1.LabelSelector{}}, true},
		"own namespace by label":      {corev1.PodAffinityTerm{LabelSelector: own, NamespaceSelector: namespaceName("own")}, true},
		"another namespace by label":  {corev1.PodAffinityTerm{LabelSelector: own, NamespaceSelector: namespaceName("other")}, false},
		"own namespace and a selector": {corev1.PodAffinityTerm{LabelSelector: own, Namespaces: []string{"own"},
			NamespaceSelector: namespaceName("other")}, true},
		"namespaces by an unknown label": {corev1.PodAffinityTerm{LabelSelector: own, NamespaceSelector: own}, false},
		"a hash without a value yet": {corev1.PodAffinityTerm{LabelSelector: expressions(expression("app", "In", "router"), expression(hash,
			"In"))}, true},
		"others by a hash without a value yet": {corev1.PodAffinityTerm{LabelSelector: expressions(expression("app", "In", "other"), expression(hash,
			"In"))}, false},
		"a hash of another revision": {corev1.PodAffinityTerm{LabelSelector: expressions(expression("app", "In", "router"), expression(hash,
			"NotIn", "1"))}, true},
		"an invalid operator": {corev1.PodAffinityTerm{LabelSelector: expressions(expression("app", "Like", "router"))}, false},
		"own pods excluded":   {corev1.PodAffinityTerm{LabelSelector: expressions(expression("app", "NotIn", "router"))}, false},
	} {
		term := test.term
		if term.TopologyKey == "" {
			term.TopologyKey = corev1.LabelHostname
		}
		required := &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
		preferred := &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1,
			PodAffinityTerm: term}}}
		for _, rule := range []*corev1.PodAntiAffinity{required, preferred} {
			deployment := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "own"},
				Spec: appsv1.DeploymentSpec{Selector: own, Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: own.MatchLabels}, Spec: corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: rule.DeepCopy()}},
				}},
			}
			var want *corev1.Affinity
			if !test.removed {
				want = &corev1.Affinity{PodAntiAffinity: rule}
			}
			workload.Separate(deployment, workload.SeparateNever)
			if diff := cmp.Diff(want, deployment.Spec.Template.Spec.Affinity); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

func TestRolledOut(t *testing.T) {
	done := appsv1.DeploymentStatus{ObservedGeneration: 3, UpdatedReplicas: 2, Replicas: 2, AvailableReplicas: 2}
	for name, change := range map[string]func(*appsv1.Deployment){
		"complete":          func(*appsv1.Deployment) {},
		"not observed yet":  func(d *appsv1.Deployment) { d.Generation = 4 },
		"an old pod":        func(d *appsv1.Deployment) { d.Status.Replicas = 3 },
		"not all updated":   func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 },
		"not all available": func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 },
		"one by default":    func(d *appsv1.Deployment) { d.Spec.Replicas = nil },
	} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(2))}, Status: done}
		change(d)
		if got := workload.RolledOut(d); got != (name == "complete") {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRolloutStuck(t *testing.T) {
	for name, change := range map[string]func(*appsv1.Deployment){
		"stuck":                 func(*appsv1.Deployment) {},
		"of an earlier rollout": func(d *appsv1.Deployment) { d.Generation = 4 },
		"paused":                func(d *appsv1.Deployment) { d.Spec.Paused = true },
		"complete since":        func(d *appsv1.Deployment) { d.Status.AvailableReplicas, d.Status.Replicas = 1, 1 },
		"in time":               func(d *appsv1.Deployment) { d.Status.Conditions[1].Status = corev1.ConditionTrue },
		"for another reason":    func(d *appsv1.Deployment) { d.Status.Conditions[1].Reason = "FailedCreate" },
		"another condition":     func(d *appsv1.Deployment) { d.Status.Conditions[1].Type = appsv1.DeploymentReplicaFailure },
		"no conditions":         func(d *appsv1.Deployment) { d.Status.Conditions = nil },
	} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Status: appsv1.DeploymentStatus{
			ObservedGeneration: 3, UpdatedReplicas: 1, Replicas: 2, AvailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"},
			},
		}}
		change(d)
		if got := workload.RolloutStuck(d); got != (name == "stuck") {
			t.Errorf("%s: %v", name, got)
		}
	}
}
