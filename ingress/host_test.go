package ingress_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/topology"
)

// TestDefaultIngressController shows R-SUITE-4: the default IngressController that an operator creates is as R-ING-1,
// R-ING-2, R-ING-5 and R-ING-6 ask.
func TestDefaultIngressController(t *testing.T) {
	eachPool(func(controlPlane, infrastructure configv1.TopologyMode, def configv1.DefaultPlacement, source ingress.PlacementSource, pool topology.Pool, _ bool) {
		want := &operatorv1.IngressController{
			TypeMeta:   metav1.TypeMeta{APIVersion: "operator.openshift.io/v1", Kind: "IngressController"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-ingress-operator", Name: "default"},
		}
		want.Spec.Replicas = ptr.To[int32](2)
		if pool == topology.ControlPlanePool {
			want.Spec.NodePlacement = pinned(t)
			if controlPlane == sr {
				want.Spec.Replicas = ptr.To[int32](1)
			}
		} else if infrastructure == sr {
			want.Spec.Replicas = ptr.To[int32](1)
		}
		if controlPlane == external {
			want = nil
		}
		got, err := ingress.DefaultIngressController(clusterOf(controlPlane, infrastructure), def, source)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("control plane %q, infrastructure %q, default placement %q, --placement=%q: %v (-want +got):\n%s", controlPlane, infrastructure, def, source, err, diff)
		}
	})
	if ic, err := ingress.DefaultIngressController(topology.Cluster{}, "", ""); ic != nil || !errors.Is(err, ingress.ErrNoTopology) {
		t.Errorf("zero Cluster: %v, %v", ic, err)
	}
	if ic, err := ingress.DefaultIngressController(clusterOf(ha, ha), "", "guess"); ic != nil || !errors.Is(err, ingress.ErrPlacement) {
		t.Errorf("unknown source: %v, %v", ic, err)
	}
}

// hostOf is an ingress operator on a cluster without a load balancer, about to shape a router.
func hostOf(t testing.TB, controlPlane, infrastructure configv1.TopologyMode, change ...func(*operatorv1.IngressController)) ingress.Host {
	t.Helper()
	return newHost(t, clusterOf(controlPlane, infrastructure), "", liveIC(change...))
}

func newHost(t testing.TB, cluster topology.Cluster, def configv1.DefaultPlacement, ic *operatorv1.IngressController) ingress.Host {
	t.Helper()
	host, err := ingress.NewHost(cluster, def, ic)
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// no fails the test for an error, and returns what there was besides.
func no[T any](t testing.TB) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func shaped(t testing.TB, router *appsv1.Deployment, h ingress.Host) *appsv1.Deployment {
	t.Helper()
	return no[*appsv1.Deployment](t)(ingress.ShapeRouter(router, h))
}

func selecting(labels map[string]string) func(*operatorv1.IngressController) {
	return placed(&operatorv1.NodePlacement{NodeSelector: &metav1.LabelSelector{MatchLabels: labels}})
}

func expressing(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

// What cannot be answered is an error, for a Host that nobody made too: never the answer for a highly available cluster.
func TestNewHostErrors(t *testing.T) {
	raw := clusterOf(sr, sr)
	raw.Infrastructure.Mode = "Quantum"
	half := clusterOf(sr, sr)
	half.ControlPlane = topology.Reading{}
	for name, test := range map[string]struct {
		cluster topology.Cluster
		ic      *operatorv1.IngressController
		want    error
	}{
		"nothing":                         {topology.Cluster{}, nil, ingress.ErrNoTopology},
		"zero Cluster":                    {topology.Cluster{}, liveIC(), ingress.ErrNoTopology},
		"platform only":                   {topology.Cluster{Platform: configv1.NonePlatformType}, liveIC(), ingress.ErrNoTopology},
		"half a Cluster":                  {half, liveIC(), ingress.ErrNoTopology},
		"a mode that nobody read":         {raw, liveIC(), ingress.ErrNoTopology},
		"no IngressController":            {clusterOf(sr, sr), nil, ingress.ErrNoIngressController},
		"a label exists":                  {clusterOf(sr, sr), liveIC(labelled(expressing("a", metav1.LabelSelectorOpExists))), ingress.ErrNodeSelector},
		"a label does not exist":          {clusterOf(sr, sr), liveIC(labelled(expressing("a", metav1.LabelSelectorOpDoesNotExist))), ingress.ErrNodeSelector},
		"a label is one of two":           {clusterOf(sr, sr), liveIC(labelled(expressing("a", metav1.LabelSelectorOpIn, "x", "y"))), ingress.ErrNodeSelector},
		"a label is one of none":          {clusterOf(sr, sr), liveIC(labelled(expressing("a", metav1.LabelSelectorOpIn))), ingress.ErrNodeSelector},
		"a label is not one":              {clusterOf(sr, sr), liveIC(labelled(expressing("a", metav1.LabelSelectorOpNotIn, "x"))), ingress.ErrNodeSelector},
		"a usable and an unusable one":    {clusterOf(ha, ha), liveIC(labelled(&metav1.LabelSelector{MatchLabels: map[string]string{"b": ""}, MatchExpressions: expressing("a", metav1.LabelSelectorOpExists).MatchExpressions})), ingress.ErrNodeSelector},
		"an operator that does not exist": {clusterOf(ha, ha), liveIC(labelled(expressing("a", "Near", "x"))), ingress.ErrNodeSelector},
	} {
		host, err := ingress.NewHost(test.cluster, configv1.DefaultPlacementControlPlane, test.ic)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		if errors.Is(err, ingress.ErrNodeSelector) && !strings.Contains(err.Error(), "openshift-ingress-operator/default") {
			t.Errorf("%s: the error does not name the object: %v", name, err)
		}
		if pool, err := host.Pool(); pool != "" || !errors.Is(err, ingress.ErrHost) {
			t.Errorf("%s: Pool %q, %v", name, pool, err)
		}
		if n, err := ingress.EffectiveReplicas(host); n != 0 || !errors.Is(err, ingress.ErrHost) {
			t.Errorf("%s: EffectiveReplicas %d, %v", name, n, err)
		}
		if d, err := ingress.ShapeRouter(manifest(), host); d != nil || !errors.Is(err, ingress.ErrHost) {
			t.Errorf("%s: ShapeRouter %v, %v", name, d, err)
		}
		if b, err := ingress.RouterPodDisruptionBudget(host, routerLabels); b != nil || !errors.Is(err, ingress.ErrHost) {
			t.Errorf("%s: RouterPodDisruptionBudget %v, %v", name, b, err)
		}
	}
}

func labelled(selector *metav1.LabelSelector) func(*operatorv1.IngressController) {
	return placed(&operatorv1.NodePlacement{NodeSelector: selector})
}

func TestHostPool(t *testing.T) {
	master := map[string]string{"node-role.kubernetes.io/master": ""}
	for name, test := range map[string]struct {
		def    configv1.DefaultPlacement
		change func(*operatorv1.IngressController)
		want   topology.Pool
	}{
		"nothing said":                           {"", replicas(1), topology.WorkerPool},
		"default placement workers":              {configv1.DefaultPlacementWorkers, replicas(1), topology.WorkerPool},
		"default placement control plane":        {configv1.DefaultPlacementControlPlane, replicas(1), topology.ControlPlanePool},
		"unknown default placement":              {"Elsewhere", replicas(1), topology.WorkerPool},
		"selects masters":                        {"", selecting(master), topology.ControlPlanePool},
		"selects the control plane by new label": {"", selecting(map[string]string{"node-role.kubernetes.io/control-plane": ""}), topology.ControlPlanePool},
		"selects infra nodes":                    {configv1.DefaultPlacementControlPlane, placed(moved()), topology.WorkerPool},
		"selects masters by an expression":       {"", labelled(expressing("node-role.kubernetes.io/master", metav1.LabelSelectorOpIn, "")), topology.ControlPlanePool},
		"selects infra nodes by an expression":   {configv1.DefaultPlacementControlPlane, labelled(expressing("node-role.kubernetes.io/infra", metav1.LabelSelectorOpIn, "")), topology.WorkerPool},
		"selects every node":                     {configv1.DefaultPlacementControlPlane, selecting(nil), topology.WorkerPool},
		"only tolerates": {configv1.DefaultPlacementControlPlane,
			placed(&operatorv1.NodePlacement{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}), topology.ControlPlanePool},
	} {
		for _, controlPlane := range allModes {
			want := test.want
			if controlPlane == external {
				want = topology.WorkerPool
			}
			host := newHost(t, clusterOf(controlPlane, sr), test.def, liveIC(test.change))
			if got := no[topology.Pool](t)(host.Pool()); got != want {
				t.Errorf("%s, control plane %q: %s, want %s", name, controlPlane, got, want)
			}
		}
	}
}

// TestEffectiveReplicas shows R-ING-1 and R-ING-2: one router where the topology of its nodes is SingleReplica, two otherwise.
func TestEffectiveReplicas(t *testing.T) {
	one := func(mode configv1.TopologyMode) int32 {
		if mode == sr {
			return 1
		}
		return 2
	}
	for _, controlPlane := range allModes {
		for _, infrastructure := range allModes {
			for _, n := range []int32{0, 1, 2, 7} {
				if got := no[int32](t)(ingress.EffectiveReplicas(hostOf(t, controlPlane, infrastructure, replicas(n)))); got != n {
					t.Errorf("%q, %q: spec.replicas %d became %d", controlPlane, infrastructure, n, got)
				}
			}
			if got := no[int32](t)(ingress.EffectiveReplicas(hostOf(t, controlPlane, infrastructure))); got != one(infrastructure) {
				t.Errorf("%q, %q, on workers: %d, want %d", controlPlane, infrastructure, got, one(infrastructure))
			}
			want := one(controlPlane)
			if controlPlane == external {
				want = one(infrastructure)
			}
			if got := no[int32](t)(ingress.EffectiveReplicas(hostOf(t, controlPlane, infrastructure, placed(pinned(t))))); got != want {
				t.Errorf("%q, %q, pinned: %d, want %d", controlPlane, infrastructure, got, want)
			}
		}
	}
}

var routerLabels = map[string]string{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"}

// manifest is a router Deployment before it is shaped, as an operator reads it from its manifest.
func manifest(change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ingress.RouterNamespace, Name: ingress.RouterName}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{}}
	d.Spec.Template.Labels = map[string]string{}
	for k, v := range routerLabels {
		d.Spec.Selector.MatchLabels[k], d.Spec.Template.Labels[k] = v, v
	}
	d.Spec.Template.Spec = corev1.PodSpec{
		Containers:  []corev1.Container{{Name: "router", Image: "router"}},
		Tolerations: []corev1.Toleration{{Key: "kubernetes.io/e2e-evict-taint-key", Operator: corev1.TolerationOpExists}},
	}
	for _, f := range change {
		f(d)
	}
	return d
}

func publishing(strategy operatorv1.EndpointPublishingStrategyType) func(*operatorv1.IngressController) {
	return func(ic *operatorv1.IngressController) {
		ic.Status.EndpointPublishingStrategy = &operatorv1.EndpointPublishingStrategy{Type: strategy}
	}
}

// Routers are kept apart revision by revision, so that a rollout needs no free node.
func TestShapeRouterAntiAffinity(t *testing.T) {
	want := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector:  &metav1.LabelSelector{MatchLabels: routerLabels},
			MatchLabelKeys: []string{"pod-template-hash"}, TopologyKey: "kubernetes.io/hostname",
		}},
	}}
	got := shaped(t, manifest(), hostOf(t, ha, ha, publishing(operatorv1.PrivateStrategyType)))
	if diff := cmp.Diff(want, got.Spec.Template.Spec.Affinity); diff != "" {
		t.Errorf("affinity (-want +got):\n%s", diff)
	}
}

func change(f ...func(*operatorv1.IngressController)) []func(*operatorv1.IngressController) { return f }

// Before the operator has written the effective strategy, the wanted one counts, and without one the platform decides (U-ING-7).
func TestShapeRouterHostNetwork(t *testing.T) {
	asked := func(strategy operatorv1.EndpointPublishingStrategyType) func(*operatorv1.IngressController) {
		return func(ic *operatorv1.IngressController) {
			ic.Spec.EndpointPublishingStrategy = &operatorv1.EndpointPublishingStrategy{Type: strategy}
		}
	}
	for name, test := range map[string]struct {
		platform configv1.PlatformType
		change   []func(*operatorv1.IngressController)
		ports    bool
	}{
		"platform None":                   {configv1.NonePlatformType, nil, true},
		"platform AWS":                    {configv1.AWSPlatformType, nil, false},
		"platform bare metal":             {configv1.BareMetalPlatformType, nil, true},
		"no platform":                     {"", nil, true},
		"asked for host network on AWS":   {configv1.AWSPlatformType, change(asked(operatorv1.HostNetworkStrategyType)), true},
		"asked for private on None":       {configv1.NonePlatformType, change(asked(operatorv1.PrivateStrategyType)), false},
		"in effect is not what was asked": {configv1.NonePlatformType, change(asked(operatorv1.PrivateStrategyType), publishing(operatorv1.HostNetworkStrategyType)), true},
	} {
		cluster := clusterOf(sr, sr)
		cluster.Platform = test.platform
		host := newHost(t, cluster, "", liveIC(append(test.change, placed(pinned(t)))...))
		update := shaped(t, manifest(), host).Spec.Strategy.RollingUpdate
		// The only pod that can take the ports must go before its successor comes.
		if ports := update.MaxSurge.IntValue() == 0 && update.MaxUnavailable.IntValue() == 1; ports != test.ports {
			t.Errorf("%s: shaped for host ports %v, want %v", name, ports, test.ports)
		}
	}
}

func TestShapeRouterPlacement(t *testing.T) {
	own := corev1.Toleration{Key: "kubernetes.io/e2e-evict-taint-key", Operator: corev1.TolerationOpExists}
	custom := corev1.Toleration{Key: "node-role.kubernetes.io/infra", Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](5)}
	master := corev1.Toleration{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	controlPlane := corev1.Toleration{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	for name, test := range map[string]struct {
		controlPlane configv1.TopologyMode
		def          configv1.DefaultPlacement
		placement    *operatorv1.NodePlacement
		selector     map[string]string
		tolerations  []corev1.Toleration
	}{
		"nothing said": {sr, "", nil, map[string]string{"node-role.kubernetes.io/worker": "", "kubernetes.io/os": "linux"}, []corev1.Toleration{own}},
		"default placement": {sr, configv1.DefaultPlacementControlPlane, nil,
			map[string]string{"node-role.kubernetes.io/master": "", "kubernetes.io/os": "linux"}, []corev1.Toleration{own, master, controlPlane}},
		"default placement, no control plane": {external, configv1.DefaultPlacementControlPlane, nil,
			map[string]string{"node-role.kubernetes.io/worker": "", "kubernetes.io/os": "linux"}, []corev1.Toleration{own}},
		"pinned by this module": {sr, "", pinned(t),
			map[string]string{"node-role.kubernetes.io/master": ""}, []corev1.Toleration{master, controlPlane}},
		"pinned by somebody who forgot the tolerations": {sr, "",
			&operatorv1.NodePlacement{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}},
			map[string]string{"node-role.kubernetes.io/control-plane": ""}, []corev1.Toleration{own, master, controlPlane}},
		"custom tolerations are kept": {sr, configv1.DefaultPlacementControlPlane,
			&operatorv1.NodePlacement{Tolerations: []corev1.Toleration{custom}},
			map[string]string{"node-role.kubernetes.io/master": "", "kubernetes.io/os": "linux"}, []corev1.Toleration{custom}},
		"moved": {sr, configv1.DefaultPlacementControlPlane, moved(),
			map[string]string{"node-role.kubernetes.io/infra": ""}, []corev1.Toleration{own}},
		"moved, by an expression": {sr, configv1.DefaultPlacementControlPlane,
			&operatorv1.NodePlacement{NodeSelector: expressing("node-role.kubernetes.io/infra", metav1.LabelSelectorOpIn, "")},
			map[string]string{"node-role.kubernetes.io/infra": ""}, []corev1.Toleration{own}},
		"moved, by a label and an expression": {sr, "",
			&operatorv1.NodePlacement{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "fast"},
				MatchExpressions: expressing("node-role.kubernetes.io/infra", metav1.LabelSelectorOpIn, "").MatchExpressions}},
			map[string]string{"node-role.kubernetes.io/infra": "", "disk": "fast"}, []corev1.Toleration{own}},
		"pinned, by an expression": {sr, "",
			&operatorv1.NodePlacement{NodeSelector: expressing("node-role.kubernetes.io/master", metav1.LabelSelectorOpIn, "")},
			map[string]string{"node-role.kubernetes.io/master": ""}, []corev1.Toleration{own, master, controlPlane}},
		"no tolerations at all": {sr, configv1.DefaultPlacementControlPlane,
			&operatorv1.NodePlacement{Tolerations: []corev1.Toleration{}},
			map[string]string{"node-role.kubernetes.io/master": "", "kubernetes.io/os": "linux"}, []corev1.Toleration{}},
		"every node": {sr, configv1.DefaultPlacementControlPlane, &operatorv1.NodePlacement{NodeSelector: &metav1.LabelSelector{}},
			map[string]string{}, []corev1.Toleration{own}},
	} {
		t.Run(name, func(t *testing.T) {
			host := newHost(t, clusterOf(test.controlPlane, sr), test.def, liveIC(placed(test.placement)))
			for from, router := range map[string]*appsv1.Deployment{
				"a manifest": manifest(),
				// What an earlier topology asked for must not stay.
				"a pinned router": manifest(func(d *appsv1.Deployment) {
					d.Spec.Template.Spec.NodeSelector = map[string]string{"node-role.kubernetes.io/master": ""}
					d.Spec.Template.Spec.Tolerations = append(d.Spec.Template.Spec.Tolerations, master, controlPlane)
				}),
			} {
				pod := shaped(t, router, host).Spec.Template.Spec
				if diff := cmp.Diff(test.selector, pod.NodeSelector); diff != "" {
					t.Errorf("from %s, node selector (-want +got):\n%s", from, diff)
				}
				if diff := cmp.Diff(test.tolerations, pod.Tolerations); diff != "" {
					t.Errorf("from %s, tolerations (-want +got):\n%s", from, diff)
				}
			}
		})
	}
}

// Of an operator's own affinity only the pod anti-affinity follows the topology.
func TestShapeRouterKeepsOtherAffinity(t *testing.T) {
	remote := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "node.openshift.io/remote-worker", Operator: corev1.NodeSelectorOpNotIn, Values: []string{""}}},
	}}}}
	near := &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100}}}
	router := manifest(func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: remote, PodAffinity: near, PodAntiAffinity: &corev1.PodAntiAffinity{}}
	})
	want := &corev1.Affinity{NodeAffinity: remote, PodAffinity: near}
	if diff := cmp.Diff(want, shaped(t, router, hostOf(t, sr, sr)).Spec.Template.Spec.Affinity); diff != "" {
		t.Errorf("affinity (-want +got):\n%s", diff)
	}
	// Nothing to select by, nothing to keep apart.
	unselected := manifest(func(d *appsv1.Deployment) { d.Spec.Selector = nil })
	if got := shaped(t, unselected, hostOf(t, ha, ha, publishing(operatorv1.PrivateStrategyType))).Spec.Template.Spec.Affinity; got != nil {
		t.Errorf("affinity without labels to select by: %v", got)
	}
}

func TestShapeRouterIsPure(t *testing.T) {
	for name, build := range map[string]func() *operatorv1.IngressController{
		"pinned":  func() *operatorv1.IngressController { return liveIC(placed(pinned(t)), replicas(1)) },
		"workers": func() *operatorv1.IngressController { return liveIC(publishing(operatorv1.PrivateStrategyType)) },
		"tolerating": func() *operatorv1.IngressController {
			return liveIC(placed(&operatorv1.NodePlacement{Tolerations: []corev1.Toleration{{Key: "a", TolerationSeconds: ptr.To[int64](1)}}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ic, router := build(), manifest()
			cluster := clusterOf(ha, ha)
			if name == "pinned" {
				cluster = clusterOf(sr, sr)
			}
			h := newHost(t, cluster, "", ic)
			first := shaped(t, router, h)
			want := text(t, first)
			if diff := cmp.Diff(manifest(), router); diff != "" {
				t.Errorf("the Deployment was changed (-before +after):\n%s", diff)
			}
			if got := text(t, shaped(t, first, h)); got != want {
				t.Errorf("shaping a shaped router changes it:\n%s\n%s", want, got)
			}
			pod := &first.Spec.Template.Spec
			pod.NodeSelector["added"], pod.Tolerations[0].Key = "x", "changed"
			if pod.Tolerations[0].TolerationSeconds != nil {
				*pod.Tolerations[0].TolerationSeconds = 99
			}
			if pod.Affinity != nil {
				pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchLabels["added"] = "x"
			}
			*first.Spec.Replicas = 9
			if diff := cmp.Diff(build(), ic); diff != "" {
				t.Errorf("changing the result changed the IngressController (-before +after):\n%s", diff)
			}
			if got := text(t, shaped(t, router, h)); got != want {
				t.Errorf("changing one result changed another:\n%s\n%s", want, got)
			}
			// What is done to the IngressController later is another Host's.
			if ic.Spec.Replicas != nil {
				*ic.Spec.Replicas = 7
			}
			if ic.Spec.NodePlacement != nil {
				ic.Spec.NodePlacement.Tolerations[0].Key = "late"
			}
			if got := text(t, shaped(t, router, h)); got != want {
				t.Errorf("changing the IngressController changed the Host:\n%s\n%s", want, got)
			}
		})
	}
}

// TestPinWithoutWorkers shows R-ING-7: a single node without workers has both roles, so a pinned router fits it as well
// as one that is not, and number, rollout, affinity and budget are the same.
func TestPinWithoutWorkers(t *testing.T) {
	node := labels.Set{"kubernetes.io/os": "linux",
		"node-role.kubernetes.io/master": "", "node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/worker": ""}
	for _, publishes := range []operatorv1.EndpointPublishingStrategyType{operatorv1.HostNetworkStrategyType, operatorv1.PrivateStrategyType} {
		var routers []*appsv1.Deployment
		var budgets []*policyv1.PodDisruptionBudget
		for _, placement := range []*operatorv1.NodePlacement{nil, pinned(t)} {
			host := hostOf(t, sr, sr, publishing(publishes), placed(placement))
			router := shaped(t, manifest(), host)
			if selector := router.Spec.Template.Spec.NodeSelector; !labels.SelectorFromSet(selector).Matches(node) {
				t.Errorf("%s: the only node does not fit %v", publishes, selector)
			}
			router.Spec.Template.Spec.NodeSelector, router.Spec.Template.Spec.Tolerations = nil, nil
			routers = append(routers, router)
			budgets = append(budgets, no[*policyv1.PodDisruptionBudget](t)(ingress.RouterPodDisruptionBudget(host, routerLabels)))
		}
		if diff := cmp.Diff(routers[0], routers[1]); diff != "" {
			t.Errorf("%s: the router (-not pinned +pinned):\n%s", publishes, diff)
		}
		if diff := cmp.Diff(budgets[0], budgets[1]); diff != "" {
			t.Errorf("%s: the budget (-not pinned +pinned):\n%s", publishes, diff)
		}
	}
}

// TestRouterPodDisruptionBudget shows R-SNO-3: no budget over one pod, and none on the only node of a pool.
func TestRouterPodDisruptionBudget(t *testing.T) {
	one, quarter, half := intstr.FromInt32(1), intstr.FromString("25%"), intstr.FromString("50%")
	for name, test := range map[string]struct {
		host ingress.Host
		want *intstr.IntOrString
	}{
		"one by topology on the control plane":       {hostOf(t, sr, sr, placed(pinned(t))), nil},
		"one by topology on the workers":             {hostOf(t, sr, sr), nil},
		"one by a person":                            {hostOf(t, ha, ha, replicas(1)), nil},
		"none by a person":                           {hostOf(t, ha, ha, replicas(0)), nil},
		"two by topology":                            {hostOf(t, ha, ha), &half},
		"two on the control plane of two":            {hostOf(t, dual, ha, placed(pinned(t))), &half},
		"two by a person":                            {hostOf(t, ha, ha, replicas(2)), &one},
		"two by a person on workers of one":          {hostOf(t, sr, sr, replicas(2)), &one},
		"two by a person on the only control plane":  {hostOf(t, sr, sr, replicas(2), placed(pinned(t))), nil},
		"four by a person on the only control plane": {hostOf(t, sr, ha, replicas(4), placed(pinned(t))), nil},
		"three":     {hostOf(t, ha, ha, replicas(3)), &quarter},
		"four":      {hostOf(t, ha, ha, replicas(4)), &quarter},
		"external":  {hostOf(t, external, ha), &half},
		"unknown":   {hostOf(t, unknown, unknown), &half},
		"empty":     {hostOf(t, empty, empty), &half},
		"ext. of 1": {hostOf(t, external, sr), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var want *policyv1.PodDisruptionBudget
			if test.want != nil {
				want = &policyv1.PodDisruptionBudget{
					TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
					ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-ingress", Name: "router-default"},
					Spec: policyv1.PodDisruptionBudgetSpec{
						MaxUnavailable: test.want, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
						UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
					},
				}
			}
			labels := map[string]string{"a": "b"}
			got := no[*policyv1.PodDisruptionBudget](t)(ingress.RouterPodDisruptionBudget(test.host, labels))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("budget (-want +got):\n%s", diff)
			}
			if got != nil {
				got.Spec.Selector.MatchLabels["c"] = "d"
				if len(labels) != 1 {
					t.Error("changing the budget changed the labels that were passed in")
				}
			}
		})
	}
}

// Each IngressController's router has a budget of its own.
func TestRouterPodDisruptionBudgetName(t *testing.T) {
	host := hostOf(t, ha, ha, func(ic *operatorv1.IngressController) { ic.Name = "internal" })
	got := no[*policyv1.PodDisruptionBudget](t)(ingress.RouterPodDisruptionBudget(host, routerLabels))
	if got.Namespace != "openshift-ingress" || got.Name != "router-internal" {
		t.Errorf("budget %s/%s, want openshift-ingress/router-internal", got.Namespace, got.Name)
	}
}
