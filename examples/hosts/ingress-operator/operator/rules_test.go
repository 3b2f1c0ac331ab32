// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/topology"
)

const (
	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	arbiter  = configv1.HighlyAvailableArbiterMode
	dual     = configv1.DualReplicaTopologyMode
	external = configv1.ExternalTopologyMode
	unknown  = configv1.TopologyMode("Lunar")
)

func cluster(controlPlane, infrastructure configv1.TopologyMode) topology.Cluster {
	return topology.Cluster{
		ControlPlane: topology.ReadingOf(controlPlane), Infrastructure: topology.ReadingOf(infrastructure), Platform: configv1.NonePlatformType,
	}
}

// outcome is a short form of the fields that depend on the topology.
type outcome struct {
	Replicas            int32
	Unavailable, Surge  string
	NodeSelector        map[string]string
	Tolerates           []string
	NodeAffinity        bool
	PrefersOthers       bool // near pods of other revisions
	Apart               bool // required anti-affinity
	Budget              string
	SpreadConstraints   int
	UnhealthyAreEvicted bool
}

func outcomeOf(t *testing.T, rules rules, in inputs, publishing *operatorv1.EndpointPublishingStrategy) outcome {
	t.Helper()
	in.ic = in.ic.DeepCopy()
	in.ic.Status.EndpointPublishingStrategy = publishing
	router, budget, err := rules.shape(DefaultOptions().baseRouter(nil, in.ic.Name, publishing), in)
	if err != nil {
		t.Fatal(err)
	}
	pod := router.Spec.Template.Spec
	got := outcome{
		Replicas:          *router.Spec.Replicas,
		Unavailable:       router.Spec.Strategy.RollingUpdate.MaxUnavailable.String(),
		Surge:             router.Spec.Strategy.RollingUpdate.MaxSurge.String(),
		NodeSelector:      pod.NodeSelector,
		SpreadConstraints: len(pod.TopologySpreadConstraints),
		Budget:            "none",
	}
	for _, toleration := range pod.Tolerations {
		got.Tolerates = append(got.Tolerates, toleration.Key)
	}
	if pod.Affinity != nil {
		got.NodeAffinity = pod.Affinity.NodeAffinity != nil
		got.PrefersOthers = pod.Affinity.PodAffinity != nil
		got.Apart = pod.Affinity.PodAntiAffinity != nil
	}
	if budget != nil {
		got.Budget = budget.Spec.MaxUnavailable.String()
		got.UnhealthyAreEvicted = ptr.Deref(budget.Spec.UnhealthyPodEvictionPolicy, "") == "AlwaysAllow"
	}
	return got
}

func ingressController(replicas *int32, placement *operatorv1.NodePlacement) *operatorv1.IngressController {
	return &operatorv1.IngressController{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-ingress-operator", Name: "default"},
		Spec:       operatorv1.IngressControllerSpec{Replicas: replicas, NodePlacement: placement},
	}
}

var (
	linuxWorker = map[string]string{"kubernetes.io/os": "linux", "node-role.kubernetes.io/worker": ""}
	linuxMaster = map[string]string{"kubernetes.io/os": "linux", "node-role.kubernetes.io/master": ""}
	masterOnly  = map[string]string{"node-role.kubernetes.io/master": ""}
	evict       = []string{"kubernetes.io/e2e-evict-taint-key"}
	bothTaints  = []string{"node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"}
)

func pinned() *operatorv1.NodePlacement {
	return &operatorv1.NodePlacement{
		NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/master": ""}},
		Tolerations: []corev1.Toleration{
			{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		},
	}
}

// TestStockShape shows U-ING-1, U-ING-4, U-ING-6, U-ING-8 and U-ING-13.
func TestStockShape(t *testing.T) {
	for _, test := range []struct {
		name       string
		cluster    topology.Cluster
		placement  configv1.DefaultPlacement
		ic         *operatorv1.IngressController
		publishing *operatorv1.EndpointPublishingStrategy
		want       outcome
	}{
		{"single node, host network", cluster(sr, sr), configv1.DefaultPlacementWorkers, ingressController(ptr.To(int32(1)), nil), hostNetwork(),
			outcome{Replicas: 1, Unavailable: "25%", Surge: "0", NodeSelector: linuxWorker, NodeAffinity: true, Budget: "none"}},
		{"single node, default placement on the control plane: no toleration", cluster(sr, ha), configv1.DefaultPlacementControlPlane, ingressController(nil, nil), hostNetwork(),
			outcome{Replicas: 1, Unavailable: "25%", Surge: "0", NodeSelector: linuxMaster, Budget: "50%", UnhealthyAreEvicted: true}},
		{"single node, private, replicas unset: a budget over one pod", cluster(sr, sr), "", ingressController(nil, nil), private(),
			outcome{Replicas: 1, Unavailable: "25%", Surge: "25%", NodeSelector: linuxWorker, NodeAffinity: true, Budget: "50%", UnhealthyAreEvicted: true}},
		{"highly available, private", cluster(ha, ha), "", ingressController(ptr.To(int32(2)), nil), private(),
			outcome{Replicas: 2, Unavailable: "50%", Surge: "25%", NodeSelector: linuxWorker, NodeAffinity: true, PrefersOthers: true, Apart: true, Budget: "1", UnhealthyAreEvicted: true}},
		{"highly available, private, one replica: apart all the same", cluster(ha, ha), "", ingressController(ptr.To(int32(1)), nil), private(),
			outcome{Replicas: 1, Unavailable: "50%", Surge: "25%", NodeSelector: linuxWorker, NodeAffinity: true, PrefersOthers: true, Apart: true, Budget: "none"}},
		{"highly available, private, four replicas", cluster(ha, ha), "", ingressController(ptr.To(int32(4)), nil), private(),
			outcome{Replicas: 4, Unavailable: "25%", Surge: "25%", NodeSelector: linuxWorker, NodeAffinity: true, PrefersOthers: true, Apart: true, Budget: "25%", UnhealthyAreEvicted: true}},
		{"highly available, host network", cluster(ha, ha), "", ingressController(nil, nil), hostNetwork(),
			outcome{Replicas: 2, Unavailable: "25%", Surge: "0", NodeSelector: linuxWorker, NodeAffinity: true, Budget: "50%", UnhealthyAreEvicted: true}},
		{"no routers wanted", cluster(ha, ha), "", ingressController(ptr.To(int32(0)), nil), hostNetwork(),
			outcome{Replicas: 0, Unavailable: "25%", Surge: "0", NodeSelector: linuxWorker, NodeAffinity: true, Budget: "none"}},
		{"external control plane", cluster(external, ha), configv1.DefaultPlacementControlPlane, ingressController(nil, nil), hostNetwork(),
			outcome{Replicas: 2, Unavailable: "25%", Surge: "0", NodeSelector: linuxMaster, Budget: "50%", UnhealthyAreEvicted: true}},
		{"a pinned IngressController replaces selector and tolerations", cluster(sr, sr), "", ingressController(ptr.To(int32(1)), pinned()), hostNetwork(),
			outcome{Replicas: 1, Unavailable: "25%", Surge: "0", NodeSelector: masterOnly, Tolerates: bothTaints, NodeAffinity: true, Budget: "none"}},
	} {
		test.want.SpreadConstraints = 1
		if test.want.Tolerates == nil {
			test.want.Tolerates = evict
		}
		got := outcomeOf(t, stockRules(), inputs{test.cluster, test.placement, test.ic}, test.publishing)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestStockReplicasAndDefault(t *testing.T) {
	for _, controlPlane := range []configv1.TopologyMode{ha, arbiter, sr, dual, external, unknown, ""} {
		for _, infrastructure := range []configv1.TopologyMode{ha, arbiter, sr, dual, external, unknown, ""} {
			for _, placement := range []configv1.DefaultPlacement{"", configv1.DefaultPlacementWorkers, configv1.DefaultPlacementControlPlane} {
				name := fmt.Sprintf("%q/%q %q", controlPlane, infrastructure, placement)
				want := int32(2)
				if placement == configv1.DefaultPlacementControlPlane && controlPlane == sr || placement != configv1.DefaultPlacementControlPlane && infrastructure == sr {
					want = 1
				}
				if got := stockReplicas(cluster(controlPlane, infrastructure), placement); got != want {
					t.Errorf("%s: %d replicas, want %d", name, got, want)
				}
				var wantDefault *operatorv1.IngressController
				if controlPlane != external {
					wantDefault = ingressController(&want, nil)
				}
				got, err := stockDefaultIngressController(cluster(controlPlane, infrastructure), placement)
				if diff := cmp.Diff(wantDefault, got); err != nil || diff != "" {
					t.Errorf("%s, default IngressController: %v (-want +got):\n%s", name, err, diff)
				}
			}
		}
	}
}

// The module has its own tests; this one checks that it gets its inputs.
func TestVendoredShape(t *testing.T) {
	for _, test := range []struct {
		name       string
		cluster    topology.Cluster
		placement  configv1.DefaultPlacement
		ic         *operatorv1.IngressController
		publishing *operatorv1.EndpointPublishingStrategy
		want       outcome
	}{
		{"pinned on a single node", cluster(sr, sr), "", ingressController(nil, pinned()), hostNetwork(),
			outcome{Replicas: 1, Unavailable: "25%", Surge: "0", NodeSelector: masterOnly, Tolerates: bothTaints, Budget: "none"}},
		{"default placement on the control plane: tolerated", cluster(sr, ha), configv1.DefaultPlacementControlPlane, ingressController(nil, nil), hostNetwork(),
			outcome{Replicas: 1, Unavailable: "25%", Surge: "0", NodeSelector: linuxMaster, Tolerates: bothTaints, Budget: "none"}},
		{"private on a single node", cluster(sr, sr), "", ingressController(nil, nil), private(),
			outcome{Replicas: 1, Unavailable: "25%", Surge: "25%", NodeSelector: linuxWorker, Budget: "none"}},
		{"private, highly available", cluster(ha, ha), "", ingressController(nil, nil), private(),
			outcome{Replicas: 2, Unavailable: "50%", Surge: "25%", NodeSelector: linuxWorker, Apart: true, Budget: "50%", UnhealthyAreEvicted: true}},
	} {
		test.want.SpreadConstraints = 1 // the operator's own, which the module keeps
		got := outcomeOf(t, vendoredRules(false), inputs{test.cluster, test.placement, test.ic}, test.publishing)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	if got, err := vendoredRules(false).defaultIngressController(cluster(external, sr), ""); err != nil || got != nil {
		t.Errorf("External: a default IngressController %v, %v, want none", got, err)
	}
	ic, err := vendoredRules(false).defaultIngressController(cluster(sr, sr), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pinned(), ic.Spec.NodePlacement); diff != "" {
		t.Errorf("SingleReplica: the default IngressController's placement (-want +got):\n%s", diff)
	}
}

// With the vendored module the routers of a highly available cluster roll out as with the stock operator.
func TestVendoredRolloutIsStockWhereHighlyAvailable(t *testing.T) {
	type rollout struct {
		Replicas           int32
		Unavailable, Surge string
		Apart              bool
		Budget             string
	}
	of := func(got outcome) rollout {
		return rollout{got.Replicas, got.Unavailable, got.Surge, got.Apart, got.Budget}
	}
	modes := []configv1.TopologyMode{ha, arbiter, dual, external, unknown, ""}
	for _, controlPlane := range modes {
		for _, infrastructure := range modes {
			for _, placement := range []configv1.DefaultPlacement{"", configv1.DefaultPlacementWorkers, configv1.DefaultPlacementControlPlane} {
				for _, where := range []*operatorv1.NodePlacement{nil, pinned()} {
					for _, publishing := range []*operatorv1.EndpointPublishingStrategy{hostNetwork(), private()} {
						for n := int32(-1); n <= 12; n++ {
							ic := ingressController(nil, where)
							if n >= 0 {
								ic.Spec.Replicas = ptr.To(n)
							}
							in := inputs{cluster(controlPlane, infrastructure), placement, ic}
							want, got := of(outcomeOf(t, stockRules(), in, publishing)), of(outcomeOf(t, vendoredRules(false), in, publishing))
							if want != got {
								t.Errorf("%q/%q, default placement %q, pinned %v, %s, %d replicas: stock %+v, vendored %+v",
									controlPlane, infrastructure, placement, where != nil, publishing.Type, n, want, got)
							}
						}
					}
				}
			}
		}
	}
}

// Both interpret a node selector equally: an expression that is equivalent to a label is applied, any other is an
// error.
func TestNodeSelectors(t *testing.T) {
	for name, rules := range map[string]rules{"stock": stockRules(), "vendored": vendoredRules(false)} {
		shape := func(operator metav1.LabelSelectorOperator, values ...string) (map[string]string, error) {
			ic := ingressController(nil, &operatorv1.NodePlacement{NodeSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "node-role.kubernetes.io/infra", Operator: operator, Values: values}},
			}})
			router, _, err := rules.shape(DefaultOptions().baseRouter(nil, ic.Name, private()), inputs{cluster(ha, ha), "", ic})
			if router == nil {
				return nil, err
			}
			return router.Spec.Template.Spec.NodeSelector, err
		}
		got, err := shape(metav1.LabelSelectorOpIn, "")
		if diff := cmp.Diff(map[string]string{"node-role.kubernetes.io/infra": ""}, got); err != nil || diff != "" {
			t.Errorf("%s: %v, node selector (-want +got):\n%s", name, err, diff)
		}
		if got, err := shape(metav1.LabelSelectorOpExists); err == nil || got != nil {
			t.Errorf("%s: a label that exists became %v, %v", name, got, err)
		}
	}
}

// A change of the rules leaves nothing behind on a live router.
func TestRulesReplaceEachOther(t *testing.T) {
	in := inputs{cluster: cluster(ha, ha), ic: ingressController(nil, nil)}
	in.ic.Status.EndpointPublishingStrategy = private()
	base := DefaultOptions().baseRouter(nil, "default", private())
	shape := func(rules rules, router *appsv1.Deployment) *appsv1.Deployment {
		shaped, _, err := rules.shape(router, in)
		if err != nil {
			t.Fatal(err)
		}
		return shaped
	}
	for _, pair := range [][2]rules{{stockRules(), vendoredRules(false)}, {vendoredRules(false), stockRules()}} {
		got := shape(pair[1], DefaultOptions().baseRouter(shape(pair[0], base), "default", private()))
		if diff := cmp.Diff(shape(pair[1], base), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
