package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch"
)

// optOut keeps the module away, or not, as `oc annotate` would.
func (c *cluster) optOut(away bool) {
	c.Helper()
	value := "null"
	if away {
		value = `"console"`
	}
	c.patch(object("operator.openshift.io/v1", "Console", "", console.OperatorName), "oc", `{"metadata":{"annotations":{"`+patch.OptOutAnnotation+`":`+value+`}}}`)
}

// Terms about other applications stay on a Deployment that is shaped, those about its own pods go, and no empty rule is left. Letting go, by the
// topology or by a person, brings back what was there, with its owner.
func TestAntiAffinityComesAndGoes(t *testing.T) {
	hostname := func(labels map[string]string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: "kubernetes.io/hostname"}
	}
	own, other := hostname(map[string]string{"app": "console", "component": "downloads"}), hostname(map[string]string{"app": "noisy"})
	required := func(terms ...corev1.PodAffinityTerm) *corev1.PodAntiAffinity {
		return &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	}
	preferring := func(anti *corev1.PodAntiAffinity, terms ...corev1.PodAffinityTerm) *corev1.PodAntiAffinity {
		for _, term := range terms {
			anti.PreferredDuringSchedulingIgnoredDuringExecution = append(anti.PreferredDuringSchedulingIgnoredDuringExecution, corev1.WeightedPodAffinityTerm{Weight: 1, PodAffinityTerm: term})
		}
		return anti
	}
	nodes := &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1,
		Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}}}}}}
	zone := own
	zone.TopologyKey = "topology.kubernetes.io/zone"

	for name, test := range map[string]struct{ before, shaped *corev1.Affinity }{
		"its own":                  {&corev1.Affinity{PodAntiAffinity: required(own)}, nil},
		"its own in both lists":    {&corev1.Affinity{PodAntiAffinity: preferring(required(own), own)}, nil},
		"its own, preferred":       {&corev1.Affinity{PodAntiAffinity: preferring(required(), own)}, nil},
		"its own beside another's": {&corev1.Affinity{PodAntiAffinity: required(own, other)}, &corev1.Affinity{PodAntiAffinity: required(other)}},
		"another's, preferred": {&corev1.Affinity{PodAntiAffinity: preferring(required(own), other, own, zone)},
			&corev1.Affinity{PodAntiAffinity: preferring(required(), other, zone)}},
		"nothing but another's": {&corev1.Affinity{PodAntiAffinity: required(other)}, &corev1.Affinity{PodAntiAffinity: required(other)}},
		"its own beside nodes":  {&corev1.Affinity{PodAntiAffinity: required(own), NodeAffinity: nodes}, &corev1.Affinity{NodeAffinity: nodes}},
		"somebody's empty rule": {&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}, &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, shared.Server(t))
			c.installInfrastructure(ha, ha)
			c.installOperator("")
			c.installVersion()
			c.installConsole()
			made := manifest(console.DownloadsName)
			made.Spec.Template.Spec.Affinity = test.before.DeepCopy()
			c.install(console.ClusterVersionOperator, made)
			c.rollOut()
			before := c.deployment(console.DownloadsName)
			same := func(what string, want, got any) {
				t.Helper()
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
			w := c.walker()
			// walk lets the cluster-version-operator see the ClusterVersion, but write nothing: what comes back is of our doing.
			walk := func() *appsv1.Deployment {
				t.Helper()
				for range 6 {
					w.step()
					if err := w.operator.observe(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				return c.deployment(console.DownloadsName)
			}
			for what, away := range map[string]func(){"topology": func() { c.flip(ha, ha) }, "opt-out": func() { c.optOut(true) }} {
				c.flip(sr, sr)
				c.optOut(false)
				taken := walk()
				same(what+": affinity", test.shaped, taken.Spec.Template.Spec.Affinity)
				if owners := owned(t, taken)["sno.solonode.github.io/console Apply "]; owners == "" {
					t.Errorf("%s: nothing is ours", what)
				}
				c.server.NoWrites(t, us, func() { w.step(); w.step() })
				// The rollout past the old pods is over: maxUnavailable changes once more, and no pod is replaced for that.
				c.rollOut()
				rolled := walk()
				same(what+": the pod template later", taken.Spec.Template, rolled.Spec.Template)
				if n := rolled.Spec.Strategy.RollingUpdate.MaxUnavailable.IntVal; n != 0 {
					t.Errorf("%s: maxUnavailable is %d", what, n)
				}
				away()
				back := walk()
				same(what+": the spec afterwards", before.Spec, back.Spec)
				same(what+": its owners", owned(t, before), owned(t, back))
				c.requireNothingOfOurs(back)
			}
		})
	}
}
