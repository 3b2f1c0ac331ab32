package auth_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/topology"
)

// TestReplicas shows R-AUTH-3, and R-AUTH-1 where there is one node.
func TestReplicas(t *testing.T) {
	for _, nodes := range []int32{-1, 0, 1, 2, 3, 5} {
		for mode, want := range map[configv1.TopologyMode]int32{sr: 1, dual: 2, arbiter: 2, ha: nodes, empty: nodes, unknown: nodes} {
			for _, infrastructure := range allModes {
				host, err := auth.NewHost(clusterOf(mode, infrastructure), nodes)
				if want < 1 {
					if !errors.Is(err, auth.ErrNoNodes) || host != (auth.Host{}) {
						t.Errorf("control plane %q, %d nodes: %v, want %v", mode, nodes, err, auth.ErrNoNodes)
					}
					continue
				}
				if got, hostErr := auth.Replicas(host); got != want || err != nil || hostErr != nil {
					t.Errorf("control plane %q, infrastructure %q, %d nodes: %d (%v, %v), want %d", mode, infrastructure, nodes, got, err, hostErr, want)
				}
			}
		}
		for _, infrastructure := range allModes {
			want := int32(2)
			if infrastructure == sr {
				want = 1
			}
			if got, err := auth.Replicas(hostOf(t, external, infrastructure, nodes)); got != want || err != nil {
				t.Errorf("external, infrastructure %q, %d nodes: %d (%v), want %d", infrastructure, nodes, got, err, want)
			}
		}
	}
}

// A Host that nobody filled, or filled by half, is no answer.
func TestNewHostRefuses(t *testing.T) {
	read := topology.ReadingOf(sr)
	for name, cluster := range map[string]topology.Cluster{
		"zero": {}, "no infrastructure topology": {ControlPlane: read}, "no control-plane topology": {Infrastructure: read},
	} {
		if host, err := auth.NewHost(cluster, 3); !errors.Is(err, topology.ErrClusterNotRead) || host != (auth.Host{}) {
			t.Errorf("%s: %v, want %v", name, err, topology.ErrClusterNotRead)
		}
	}
	var zero auth.Host
	for name, call := range map[string]func() (any, error){
		"Replicas":                func() (any, error) { n, err := auth.Replicas(zero); return n == 0, err },
		"ShapeOAuthServer":        func() (any, error) { d, err := auth.ShapeOAuthServer(server(), zero); return d == nil, err },
		"ShapeOAuthAPIServer":     func() (any, error) { d, err := auth.ShapeOAuthAPIServer(apiServer(), zero); return d == nil, err },
		"OAuthServerStrategy":     func() (any, error) { s, err := auth.OAuthServerStrategy(zero); return s.RollingUpdate == nil, err },
		"OAuthAPIServerStrategy":  func() (any, error) { s, err := auth.OAuthAPIServerStrategy(zero); return s.RollingUpdate == nil, err },
		"OAuthServerAntiAffinity": func() (any, error) { a, err := auth.OAuthServerAntiAffinity(zero, serverLabels); return a == nil, err },
		"OAuthAPIServerAntiAffinity": func() (any, error) {
			a, err := auth.OAuthAPIServerAntiAffinity(zero, serverLabels)
			return a == nil, err
		},
		"OAuthServerPodDisruptionBudget": func() (any, error) {
			b, err := auth.OAuthServerPodDisruptionBudget(zero, serverLabels)
			return b == nil, err
		},
		"OAuthAPIServerPodDisruptionBudget": func() (any, error) {
			b, err := auth.OAuthAPIServerPodDisruptionBudget(zero, serverLabels)
			return b == nil, err
		},
	} {
		if nothing, err := call(); !errors.Is(err, auth.ErrHost) || nothing != true {
			t.Errorf("%s of the zero Host: %v, nothing %v; want %v and nothing", name, err, nothing, auth.ErrHost)
		}
	}
}

// shape is what depends on the topology, in short.
type shape struct {
	Replicas, MaxUnavailable, MaxSurge int
	// Apart: "" for no anti-affinity, "revision" for pods of one revision, "all" for all pods.
	Apart string
}

func shapeOf(t testing.TB, d *appsv1.Deployment, labels map[string]string) shape {
	t.Helper()
	if d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		t.Fatalf("strategy is %q", d.Spec.Strategy.Type)
	}
	update := d.Spec.Strategy.RollingUpdate
	s := shape{Replicas: int(*d.Spec.Replicas), MaxUnavailable: update.MaxUnavailable.IntValue(), MaxSurge: update.MaxSurge.IntValue()}
	affinity := d.Spec.Template.Spec.Affinity
	switch {
	case affinity == nil:
	case cmp.Equal(affinity, antiAffinity(term(labels, "pod-template-hash"))):
		s.Apart = "revision"
	case cmp.Equal(affinity, antiAffinity(term(labels))):
		s.Apart = "all"
	default:
		s.Apart = text(t, affinity)
	}
	return s
}

// Each row can finish a rollout on the nodes that its topology has, and never has two audit-log writers on one of them.
func TestShapeRollout(t *testing.T) {
	for name, test := range map[string]struct {
		controlPlane, infrastructure configv1.TopologyMode
		nodes                        int32
		server, apiServer            shape
	}{
		"single":                            {sr, sr, 1, shape{1, 0, 1, ""}, shape{1, 1, 0, "all"}},
		"single with workers":               {sr, ha, 1, shape{1, 0, 1, ""}, shape{1, 1, 0, "all"}},
		"single, nodes not counted":         {sr, sr, 0, shape{1, 0, 1, ""}, shape{1, 1, 0, "all"}},
		"single, three nodes in a flip":     {sr, sr, 3, shape{1, 0, 1, ""}, shape{1, 1, 0, "all"}},
		"two nodes":                         {dual, ha, 2, shape{2, 1, 2, "revision"}, shape{2, 1, 0, "all"}},
		"two nodes, one lost":               {dual, ha, 1, shape{2, 1, 2, "revision"}, shape{2, 1, 0, "all"}},
		"arbiter":                           {arbiter, ha, 2, shape{2, 1, 2, "revision"}, shape{2, 1, 0, "all"}},
		"highly available":                  {ha, ha, 3, shape{3, 2, 3, "revision"}, shape{3, 1, 0, "all"}},
		"highly available, one worker":      {ha, sr, 3, shape{3, 2, 3, "revision"}, shape{3, 1, 0, "all"}},
		"highly available, one node so far": {ha, ha, 1, shape{1, 1, 1, "revision"}, shape{1, 1, 0, "all"}},
		"highly available, five nodes":      {ha, ha, 5, shape{5, 4, 5, "revision"}, shape{5, 1, 0, "all"}},
		"empty":                             {empty, empty, 3, shape{3, 2, 3, "revision"}, shape{3, 1, 0, "all"}},
		"unknown":                           {unknown, unknown, 3, shape{3, 2, 3, "revision"}, shape{3, 1, 0, "all"}},
		"external":                          {external, ha, 0, shape{2, 1, 2, "revision"}, shape{2, 1, 0, "all"}},
		"external, one worker":              {external, sr, 0, shape{1, 0, 1, ""}, shape{1, 1, 0, "all"}},
	} {
		t.Run(name, func(t *testing.T) {
			host := hostOf(t, test.controlPlane, test.infrastructure, test.nodes)
			if diff := cmp.Diff(test.server, shapeOf(t, shapedServer(t, server(), host), serverLabels)); diff != "" {
				t.Errorf("oauth-openshift (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.apiServer, shapeOf(t, shapedAPIServer(t, apiServer(), host), apiServerLabels)); diff != "" {
				t.Errorf("oauth-apiserver (-want +got):\n%s", diff)
			}
			// Each part alone is that of the whole.
			for _, part := range []struct {
				name     string
				whole    *appsv1.Deployment
				strategy appsv1.DeploymentStrategy
				apart    *corev1.PodAntiAffinity
			}{
				{"oauth-openshift", shapedServer(t, server(), host), must[appsv1.DeploymentStrategy](t)(auth.OAuthServerStrategy(host)),
					must[*corev1.PodAntiAffinity](t)(auth.OAuthServerAntiAffinity(host, serverLabels))},
				{"oauth-apiserver", shapedAPIServer(t, apiServer(), host), must[appsv1.DeploymentStrategy](t)(auth.OAuthAPIServerStrategy(host)),
					must[*corev1.PodAntiAffinity](t)(auth.OAuthAPIServerAntiAffinity(host, apiServerLabels))},
			} {
				var apart *corev1.PodAntiAffinity
				if affinity := part.whole.Spec.Template.Spec.Affinity; affinity != nil {
					apart = affinity.PodAntiAffinity
				}
				if diff := cmp.Diff(part.whole.Spec.Strategy, part.strategy) + cmp.Diff(apart, part.apart); diff != "" {
					t.Errorf("%s in parts (-whole +part):\n%s", part.name, diff)
				}
			}
		})
	}
}

// Pinned means schedulable, and what an earlier topology or a stock operator asked for does not stay.
func TestShapePlacement(t *testing.T) {
	pinned := map[string]string{"kubernetes.io/os": "linux", "node-role.kubernetes.io/master": ""}
	onWorkers := map[string]string{"kubernetes.io/os": "linux", "node-role.kubernetes.io/worker": ""}
	from := func(selector map[string]string, tolerations ...corev1.Toleration) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.NodeSelector, d.Spec.Template.Spec.Tolerations = selector, tolerations
		}
	}
	for name, test := range map[string]struct {
		controlPlane configv1.TopologyMode
		from         func(*appsv1.Deployment)
		selector     map[string]string
		tolerations  []corev1.Toleration
	}{
		"nothing": {sr, from(nil), map[string]string{"node-role.kubernetes.io/master": ""}, []corev1.Toleration{master, controlPlane}},
		"as stock": {sr, from(map[string]string{"kubernetes.io/os": "linux", "node-role.kubernetes.io/master": ""}, master, unreachable),
			pinned, []corev1.Toleration{master, unreachable, controlPlane}},
		"by the new label": {ha, from(map[string]string{"kubernetes.io/os": "linux", "node-role.kubernetes.io/control-plane": ""}, unreachable),
			pinned, []corev1.Toleration{unreachable, master, controlPlane}},
		"from workers": {dual, from(onWorkers), pinned, []corev1.Toleration{master, controlPlane}},
		"seconds are part of a toleration": {arbiter, from(pinned, corev1.Toleration{Key: master.Key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}),
			pinned, []corev1.Toleration{{Key: master.Key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, master, controlPlane}},
		"to workers":        {external, from(pinned, master, unreachable, controlPlane), onWorkers, []corev1.Toleration{unreachable}},
		"to workers, clean": {external, from(onWorkers), onWorkers, nil},
	} {
		t.Run(name, func(t *testing.T) {
			host := hostOf(t, test.controlPlane, sr, 1)
			for operand, shaped := range map[string]*appsv1.Deployment{
				"oauth-openshift": shapedServer(t, server(test.from), host),
				"oauth-apiserver": shapedAPIServer(t, apiServer(test.from), host),
			} {
				if diff := cmp.Diff(test.selector, shaped.Spec.Template.Spec.NodeSelector); diff != "" {
					t.Errorf("%s, node selector (-want +got):\n%s", operand, diff)
				}
				if diff := cmp.Diff(test.tolerations, shaped.Spec.Template.Spec.Tolerations); diff != "" && len(test.tolerations)+len(shaped.Spec.Template.Spec.Tolerations) > 0 {
					t.Errorf("%s, tolerations (-want +got):\n%s", operand, diff)
				}
			}
		})
	}
}

// Of the pods' own affinity only what keeps them from each other follows the topology.
func TestShapeAffinity(t *testing.T) {
	stock := map[string]string{"oauth-openshift-anti-affinity": "true"}
	elsewhere := term(map[string]string{"app": "etcd"})
	nodes := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}},
	}}}}
	weighted := func(term corev1.PodAffinityTerm) corev1.WeightedPodAffinityTerm {
		return corev1.WeightedPodAffinityTerm{Weight: 7, PodAffinityTerm: term}
	}
	broken := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Sometimes"}},
	}}
	for name, test := range map[string]struct {
		from            *corev1.Affinity
		single, several *corev1.Affinity
	}{
		"none":                {nil, nil, antiAffinity(term(serverLabels, "pod-template-hash"))},
		"empty":               {&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}, nil, antiAffinity(term(serverLabels, "pod-template-hash"))},
		"of a stock operator": {antiAffinity(term(stock)), nil, antiAffinity(term(serverLabels, "pod-template-hash"))},
		"preferred": {&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{weighted(term(serverLabels))},
		}}, nil, antiAffinity(term(serverLabels, "pod-template-hash"))},
		"away from others": {antiAffinity(elsewhere, term(serverLabels)), antiAffinity(elsewhere), antiAffinity(elsewhere, term(serverLabels, "pod-template-hash"))},
		"rather away from others": {
			&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{weighted(elsewhere)},
			}},
			&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{weighted(elsewhere)},
			}},
			&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{term(serverLabels, "pod-template-hash")},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{weighted(elsewhere)},
			}},
		},
		"a selector that cannot be read": {antiAffinity(broken), antiAffinity(broken), antiAffinity(broken, term(serverLabels, "pod-template-hash"))},
		"a term about no pods": {antiAffinity(corev1.PodAffinityTerm{TopologyKey: "zone"}), antiAffinity(corev1.PodAffinityTerm{TopologyKey: "zone"}),
			antiAffinity(corev1.PodAffinityTerm{TopologyKey: "zone"}, term(serverLabels, "pod-template-hash"))},
		"of nodes": {&corev1.Affinity{NodeAffinity: nodes}, &corev1.Affinity{NodeAffinity: nodes},
			&corev1.Affinity{NodeAffinity: nodes, PodAntiAffinity: antiAffinity(term(serverLabels, "pod-template-hash")).PodAntiAffinity}},
	} {
		t.Run(name, func(t *testing.T) {
			from := server(func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Affinity = test.from
				for k, v := range stock {
					d.Spec.Template.Labels[k] = v
				}
			})
			if diff := cmp.Diff(test.single, shapedServer(t, from, hostOf(t, sr, sr, 1)).Spec.Template.Spec.Affinity); diff != "" {
				t.Errorf("single (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.several, shapedServer(t, from, hostOf(t, ha, ha, 3)).Spec.Template.Spec.Affinity); diff != "" {
				t.Errorf("highly available (-want +got):\n%s", diff)
			}
		})
	}
}

// A selector of expressions selects these pods and not every pod of the namespace; without a selector nothing is selected.
func TestShapeSelector(t *testing.T) {
	expressions := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}
	from := server(func(d *appsv1.Deployment) { d.Spec.Selector = expressions })
	terms := shapedServer(t, from, hostOf(t, ha, ha, 3)).Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(terms) != 1 || !cmp.Equal(terms[0].LabelSelector, expressions) {
		t.Errorf("terms: %s", text(t, terms))
	}
	from.Spec.Selector = nil
	if got := shapedAPIServer(t, from, hostOf(t, ha, ha, 3)).Spec.Template.Spec.Affinity; got != nil {
		t.Errorf("without a selector: %s", text(t, got))
	}
}

// The argument and everything that is not the topology's business stay as they are, and shaping twice is shaping once,
// whatever way the topology took.
func TestShapeIsPure(t *testing.T) {
	full := func(d *appsv1.Deployment) {
		d.Labels, d.Annotations = map[string]string{"l": "v"}, map[string]string{"a": "v"}
		d.Spec.MinReadySeconds, d.Spec.RevisionHistoryLimit, d.Spec.ProgressDeadlineSeconds = 30, ptr.To[int32](3), ptr.To[int32](600)
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		d.Spec.Template.Annotations = map[string]string{"ta": "v"}
		d.Spec.Template.Spec.PriorityClassName = "system-node-critical"
		d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone"}}
		d.Spec.Template.Spec.Affinity = antiAffinity(term(map[string]string{"app": "etcd"}))
		d.Status.ReadyReplicas = 1
	}
	for operand, test := range map[string]struct {
		from  *appsv1.Deployment
		shape func(testing.TB, *appsv1.Deployment, auth.Host) *appsv1.Deployment
	}{
		"oauth-openshift": {server(full), shapedServer},
		"oauth-apiserver": {apiServer(full), shapedAPIServer},
	} {
		before := text(t, test.from)
		for _, mode := range allModes {
			host := hostOf(t, mode, sr, 3)
			shaped := test.shape(t, test.from, host)
			if got := text(t, test.from); got != before {
				t.Fatalf("%s, %q: the argument became %s", operand, mode, got)
			}
			if once, twice := text(t, shaped), text(t, test.shape(t, shaped, host)); once != twice {
				t.Errorf("%s, %q: once  %s\ntwice %s", operand, mode, once, twice)
			}
			back := test.shape(t, test.shape(t, shaped, hostOf(t, ha, ha, 3)), host)
			if diff := cmp.Diff(shaped, back); mode != external && diff != "" {
				t.Errorf("%s, %q, there and back (-want +got):\n%s", operand, mode, diff)
			}
			restored := shaped.DeepCopy()
			restored.Spec.Replicas, restored.Spec.Strategy = test.from.Spec.Replicas, test.from.Spec.Strategy
			restored.Spec.Template.Spec.NodeSelector = test.from.Spec.Template.Spec.NodeSelector
			restored.Spec.Template.Spec.Tolerations = test.from.Spec.Template.Spec.Tolerations
			restored.Spec.Template.Spec.Affinity = test.from.Spec.Template.Spec.Affinity
			if diff := cmp.Diff(test.from, restored); diff != "" {
				t.Errorf("%s, %q: more than the shape has changed (-want +got):\n%s", operand, mode, diff)
			}
			shaped.Spec.Selector.MatchLabels["app"] = "changed"
			if affinity := shaped.Spec.Template.Spec.Affinity; affinity != nil {
				for _, term := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
					if term.LabelSelector.MatchLabels["app"] == "changed" {
						t.Errorf("%s, %q: the anti-affinity shares the selector's labels", operand, mode)
					}
				}
			}
		}
	}
}

func TestPodDisruptionBudgets(t *testing.T) {
	labels := map[string]string{"app": "x"}
	for _, controlPlane := range allModes {
		for _, infrastructure := range []configv1.TopologyMode{sr, ha} {
			host := hostOf(t, controlPlane, infrastructure, 3)
			for key, got := range map[[2]string]*policyv1.PodDisruptionBudget{
				{"openshift-authentication", "oauth-openshift-pdb"}:  must[*policyv1.PodDisruptionBudget](t)(auth.OAuthServerPodDisruptionBudget(host, labels)),
				{"openshift-oauth-apiserver", "oauth-apiserver-pdb"}: must[*policyv1.PodDisruptionBudget](t)(auth.OAuthAPIServerPodDisruptionBudget(host, labels)),
			} {
				want := &policyv1.PodDisruptionBudget{
					TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
					ObjectMeta: metav1.ObjectMeta{Namespace: key[0], Name: key[1]},
					Spec: policyv1.PodDisruptionBudgetSpec{
						MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
						UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
					},
				}
				if controlPlane == sr || (controlPlane == external && infrastructure == sr) {
					want = nil
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%q, %q, %s (-want +got):\n%s", controlPlane, infrastructure, key[1], diff)
				}
			}
		}
	}
}
