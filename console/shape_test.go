package console_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solonode/sno/topology"
)

// termKind is one kind of anti-affinity term that a console Deployment can have, and whether it keeps the Deployment's own pods off each other's
// nodes: only such a term goes.
type termKind struct {
	name string
	term corev1.PodAffinityTerm
	own  bool
}

func termKinds() []termKind {
	labels := func(pairs ...string) *metav1.LabelSelector {
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{}}
		for i := 0; i < len(pairs); i += 2 {
			selector.MatchLabels[pairs[i]] = pairs[i+1]
		}
		return selector
	}
	component := func(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "component", Operator: operator, Values: values}}}
	}
	own := labels("app", "console", "component", "ui")
	term := func(selector *metav1.LabelSelector, change ...func(*corev1.PodAffinityTerm)) corev1.PodAffinityTerm {
		t := corev1.PodAffinityTerm{LabelSelector: selector, TopologyKey: "kubernetes.io/hostname"}
		for _, f := range change {
			f(&t)
		}
		return t
	}
	in := func(namespaces ...string) func(*corev1.PodAffinityTerm) {
		return func(t *corev1.PodAffinityTerm) { t.Namespaces = namespaces }
	}
	where := func(selector *metav1.LabelSelector) func(*corev1.PodAffinityTerm) {
		return func(t *corev1.PodAffinityTerm) { t.NamespaceSelector = selector }
	}
	return []termKind{
		{"the manifest's", term(own), true},
		{"the stock operator's", term(component("In", "ui")), true},
		{"per revision", term(own, func(t *corev1.PodAffinityTerm) { t.MatchLabelKeys = []string{"pod-template-hash"} }), true},
		{"console and downloads", term(labels("app", "console")), true},
		{"a hash that is filled in later", term(&metav1.LabelSelector{MatchLabels: map[string]string{"app": "console"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "hash", Operator: "In"}}}), true},
		{"its own namespace by name", term(own, in("openshift-console")), true},
		{"every namespace", term(own, where(&metav1.LabelSelector{})), true},
		{"downloads", term(labels("app", "console", "component", "downloads")), false},
		{"another application", term(labels("app", "noisy")), false},
		{"all but its own", term(component("NotIn", "ui")), false},
		{"another namespace", term(own, in("elsewhere")), false},
		{"other namespaces by label", term(own, where(labels("team", "a"))), false},
		{"its own, by zone", term(own, func(t *corev1.PodAffinityTerm) { t.TopologyKey = "topology.kubernetes.io/zone" }), false},
		{"nobody", term(nil), false},
	}
}

// ShapeDeployment against its rule as a table: every pair of topologies with every kind of term, and every pair of kinds with each row of the table,
// as required and as preferred terms, with other affinity beside them or not.
func TestShapeDeploymentAgainstItsRule(t *testing.T) {
	type row struct {
		replicas             int32
		unavailable, surge   int32
		apart                bool
		selector, tolerances []string
	}
	rule := map[bool]map[bool]row{ // single, on workers
		true: {
			false: {1, 0, 1, false, []string{"disk", "node-role.kubernetes.io/master"}, []string{"mine", "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"}},
			true:  {1, 0, 1, false, []string{"disk"}, []string{"mine"}},
		},
		false: {
			false: {2, 1, 3, true, []string{"disk", "node-role.kubernetes.io/master"}, []string{"mine", "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"}},
			true:  {2, 1, 3, true, []string{"disk"}, []string{"mine"}},
		},
	}
	kinds := termKinds()
	eachTopology(func(controlPlane, infrastructure configv1.TopologyMode, single, onWorkers bool) {
		cluster, want := clusterOf(controlPlane, infrastructure), rule[single][onWorkers]
		rest := func(got *appsv1.Deployment) string {
			spec := got.Spec.Template.Spec
			var selector, tolerances []string
			for key := range spec.NodeSelector {
				selector = append(selector, key)
			}
			slices.Sort(selector)
			for _, t := range spec.Tolerations {
				tolerances = append(tolerances, t.Key)
			}
			is := row{*got.Spec.Replicas, got.Spec.Strategy.RollingUpdate.MaxUnavailable.IntVal, got.Spec.Strategy.RollingUpdate.MaxSurge.IntVal, want.apart, selector, tolerances}
			if reflect.DeepEqual(want, is) {
				return ""
			}
			return fmt.Sprintf("%+v, want %+v", is, want)
		}
		everyPair := slices.Contains([][2]configv1.TopologyMode{{sr, ha}, {ha, sr}, {external, sr}, {external, ha}}, [2]configv1.TopologyMode{controlPlane, infrastructure})
		for i, kind := range kinds {
			compareShape(t, cluster, want.apart, []termKind{kind}, nil, rest)
			for j := 0; everyPair && j < len(kinds); j++ {
				for _, nodes := range []*corev1.NodeAffinity{nil, {}} {
					compareShape(t, cluster, want.apart, []termKind{kinds[i], kinds[j]}, nodes, rest)
				}
			}
		}
	})
}

func compareShape(t *testing.T, cluster topology.Cluster, apart bool, kinds []termKind, nodes *corev1.NodeAffinity, rest func(*appsv1.Deployment) string) {
	t.Helper()
	anti, want := corev1.PodAntiAffinity{}, corev1.PodAntiAffinity{}
	for i, kind := range kinds {
		weighted := corev1.WeightedPodAffinityTerm{Weight: int32(i + 1), PodAffinityTerm: kind.term} //nolint:gosec // a few
		anti.RequiredDuringSchedulingIgnoredDuringExecution = append(anti.RequiredDuringSchedulingIgnoredDuringExecution, kind.term)
		anti.PreferredDuringSchedulingIgnoredDuringExecution = append(anti.PreferredDuringSchedulingIgnoredDuringExecution, weighted)
		if !kind.own {
			want.RequiredDuringSchedulingIgnoredDuringExecution = append(want.RequiredDuringSchedulingIgnoredDuringExecution, kind.term)
			want.PreferredDuringSchedulingIgnoredDuringExecution = append(want.PreferredDuringSchedulingIgnoredDuringExecution, weighted)
		}
	}
	if apart {
		want.RequiredDuringSchedulingIgnoredDuringExecution = append(want.RequiredDuringSchedulingIgnoredDuringExecution, spread("ui")...)
	}
	start := manifest("console", func(d *appsv1.Deployment) {
		d.Spec.Strategy = strategy(intstr.FromString("10%"), intstr.FromInt32(7))
		d.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "mine", Operator: corev1.TolerationOpExists}}
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: nodes, PodAntiAffinity: &anti}
	})
	got := shapedFor(t, start, cluster)
	var wanted *corev1.Affinity
	if len(want.RequiredDuringSchedulingIgnoredDuringExecution)+len(want.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
		wanted = &corev1.Affinity{PodAntiAffinity: &want}
	}
	if nodes != nil && wanted == nil {
		wanted = &corev1.Affinity{}
	}
	if nodes != nil {
		wanted.NodeAffinity = nodes
	}
	name := fmt.Sprintf("%s to %s on %v, %v, node affinity %t", kinds[0].name, kinds[len(kinds)-1].name, cluster.ControlPlane, cluster.Infrastructure, nodes != nil)
	if problem := rest(got); problem != "" {
		t.Fatalf("%s: %s", name, problem)
	}
	if !reflect.DeepEqual(wanted, got.Spec.Template.Spec.Affinity) {
		t.Fatalf("%s (-want +got):\n%s", name, cmp.Diff(wanted, got.Spec.Template.Spec.Affinity))
	}
	if again := shapedFor(t, got, cluster); !reflect.DeepEqual(got, again) {
		t.Fatalf("%s: shaping twice is not shaping once:\n%s", name, cmp.Diff(got, again))
	}
}
