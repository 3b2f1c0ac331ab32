// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/workload"
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
			corev1.PodSpec{NodeSelector: selector{worker: ""}, Tolerations: tolerations{onMaster, own, onControlPlane}}, topology.WorkerPool,
		},
		"tolerates the master taint until evicted, to the control plane": {
			corev1.PodSpec{NodeSelector: selector{master: ""}, Tolerations: tolerations{evicted}},
			corev1.PodSpec{NodeSelector: selector{master: ""}, Tolerations: tolerations{evicted, onMaster, onControlPlane}},
			topology.ControlPlanePool,
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
}

// R-SNO-1: pods on the control plane tolerate its taint. More tolerations would only restart pods.
func TestTolerate(t *testing.T) {
	const (
		master, controlPlane = "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"
		exists, schedule     = corev1.TolerationOpExists, corev1.TaintEffectNoSchedule
	)
	type tolerations = []corev1.Toleration
	own := corev1.Toleration{Key: "disk", Operator: exists}
	both := tolerations{{Key: master, Operator: exists, Effect: schedule}, {Key: controlPlane, Operator: exists, Effect: schedule}}
	for name, test := range map[string]struct{ present, added tolerations }{
		"none":                               {nil, both},
		"another":                            {tolerations{own}, both},
		"both":                               {both, nil},
		"master":                             {both[:1], nil},
		"master and another":                 {tolerations{both[0], own}, nil},
		"control-plane only":                 {both[1:], both[:1]},
		"master, all effects":                {tolerations{{Key: master, Operator: exists}}, nil},
		"master, no value":                   {tolerations{{Key: master, Effect: schedule}}, nil},
		"master, another value":              {tolerations{{Key: master, Operator: corev1.TolerationOpEqual, Value: "x", Effect: schedule}}, both},
		"master, another effect":             {tolerations{{Key: master, Operator: exists, Effect: corev1.TaintEffectNoExecute}}, both},
		"every taint":                        {tolerations{{Operator: exists}}, nil},
		"every taint that prevents to run":   {tolerations{{Operator: exists, Effect: corev1.TaintEffectNoExecute}}, both},
		"no key, which the API would refuse": {tolerations{{Effect: schedule}}, both},
	} {
		if got := workload.ToleratesControlPlane(test.present); got != (test.added == nil || len(test.added) == 1 && got) {
			t.Errorf("%s: tolerates the control plane: %v", name, got)
		}
		for pool, want := range map[topology.Pool]tolerations{
			topology.ControlPlanePool: append(append(tolerations{}, test.present...), test.added...),
			topology.WorkerPool:       append(tolerations{}, test.present...),
		} {
			before := append(tolerations{}, test.present...)
			got := workload.Tolerate(test.present, pool)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, pool, diff)
			}
			if diff := cmp.Diff(before, test.present, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s, %s: the argument was changed (-before +after):\n%s", name, pool, diff)
			}
		}
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
		workload.SeparateNever: {others}, workload.SeparatePerRevision: {others, perRevision}, workload.SeparateAlways: {stock, others},
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
	last := deployment()
	last.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{stock}}}
	workload.Separate(last, workload.SeparateNever)
	if last.Spec.Template.Spec.Affinity != nil {
		t.Errorf("an emptied affinity should be none, got %v", last.Spec.Template.Spec.Affinity)
	}
	for name, affinity := range map[string]*corev1.Affinity{
		"an empty rule":   {PodAntiAffinity: &corev1.PodAntiAffinity{}},
		"an empty map":    {},
		"no affinity":     nil,
		"others' by list": {PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{}}},
	} {
		d := deployment()
		d.Spec.Template.Spec.Affinity = affinity.DeepCopy()
		workload.Separate(d, workload.SeparateNever)
		if diff := cmp.Diff(affinity, d.Spec.Template.Spec.Affinity); diff != "" {
			t.Errorf("%s, to remove nothing from (-want +got):\n%s", name, diff)
		}
	}
}

// A term that has the wanted effect stays as an operator wrote it: another spelling would restart all pods.
func TestSeparateKeeps(t *testing.T) {
	const hash = "ingresscontroller.operator.openshift.io/hash"
	own := labels.Set{"app": "console", "component": "ui"}
	in := func(key string, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}
	}
	by := func(expressions ...metav1.LabelSelectorRequirement) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchExpressions: expressions}, TopologyKey: corev1.LabelHostname}
	}
	with := func(change func(*corev1.PodAffinityTerm)) corev1.PodAffinityTerm {
		term := by(in("component", "ui"))
		change(&term)
		return term
	}
	const never, revision, always = workload.SeparateNever, workload.SeparatePerRevision, workload.SeparateAlways
	for name, test := range map[string]struct {
		term corev1.PodAffinityTerm
		keep workload.Separation // SeparateNever: it never stays
	}{
		"by one label": {with(func(term *corev1.PodAffinityTerm) {
			term.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"component": "ui"}}
		}), always},
		"by an expression":            {by(in("component", "ui")), always},
		"by one of two values":        {by(in("component", "ui", "ui2")), always},
		"by all labels":               {by(in("app", "console"), in("component", "ui")), always},
		"by a hash that is filled in": {by(in("component", "ui"), in(hash)), revision},
		"by the API server's hash":    {with(func(term *corev1.PodAffinityTerm) { term.MatchLabelKeys = []string{"pod-template-hash"} }), revision},
		"by another key":              {with(func(term *corev1.PodAffinityTerm) { term.MatchLabelKeys = []string{"app"} }), never},
		"other revisions":             {with(func(term *corev1.PodAffinityTerm) { term.MismatchLabelKeys = []string{"pod-template-hash"} }), never},
		"other revisions by the hash": {by(in("component", "ui"), metav1.LabelSelectorRequirement{Key: hash, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"1"}}), never},
		"by a label that is there":    {by(metav1.LabelSelectorRequirement{Key: "component", Operator: metav1.LabelSelectorOpExists}), never},
		"of downloads too":            {by(in("app", "console")), never},
		"of downloads too, by values": {by(in("component", "ui", "downloads")), never},
		"all pods":                    {with(func(term *corev1.PodAffinityTerm) { term.LabelSelector = &metav1.LabelSelector{} }), never},
		"of several namespaces":       {with(func(term *corev1.PodAffinityTerm) { term.Namespaces = []string{"own", "other"} }), never},
		"of all namespaces":           {with(func(term *corev1.PodAffinityTerm) { term.NamespaceSelector = &metav1.LabelSelector{} }), never},
	} {
		for _, separation := range []workload.Separation{never, revision, always} {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "own"}}
			d.Spec.Selector, d.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: own}, own
			fresh := d.DeepCopy()
			workload.Separate(fresh, separation)
			want := fresh.Spec.Template.Spec.Affinity
			d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{test.term}}}
			if separation != never && separation == test.keep {
				want = d.Spec.Template.Spec.Affinity.DeepCopy()
			}
			workload.Separate(d, separation, labels.Set{"app": "console", "component": "downloads"})
			if diff := cmp.Diff(want, d.Spec.Template.Spec.Affinity); diff != "" {
				t.Errorf("%s, separation %d (-want +got):\n%s", name, separation, diff)
			}
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
