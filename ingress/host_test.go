// SPDX-License-Identifier: Apache-2.0

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
	"github.com/solonode/sno/ingress/internal/fixture"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/topologytest"
	"github.com/solonode/sno/topology/workload"
)

// R-SUITE-4: the default IngressController that an operator creates meets R-ING-1, R-ING-2, R-ING-5 and R-ING-6.
func TestDefaultIngressController(t *testing.T) {
	for _, c := range poolCases() {
		want := &operatorv1.IngressController{
			TypeMeta:   metav1.TypeMeta{APIVersion: "operator.openshift.io/v1", Kind: "IngressController"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-ingress-operator", Name: "default"},
		}
		want.Spec.Replicas = ptr.To[int32](2)
		governing := c.infrastructure
		if c.pool == topology.ControlPlanePool {
			want.Spec.NodePlacement, governing = fixture.Pinned(t), c.controlPlane
		}
		if governing == topologytest.SR {
			want.Spec.Replicas = ptr.To[int32](1)
		}
		if c.controlPlane == topologytest.External {
			want = nil
		}
		got, err := ingress.DefaultIngressController(fixture.ClusterOf(c.controlPlane, c.infrastructure), c.placement, c.source)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%+v: %v (-want +got):\n%s", c, err, diff)
		}
	}
	if ic, err := ingress.DefaultIngressController(topology.Cluster{}, "", ""); ic != nil || !errors.Is(err, topology.ErrClusterNotRead) {
		t.Errorf("zero Cluster: %v, %v", ic, err)
	}
	if ic, err := ingress.DefaultIngressController(fixture.ClusterOf(topologytest.HA, topologytest.HA), "", "guess"); ic != nil || !errors.Is(err, ingress.ErrPlacement) {
		t.Errorf("unknown source: %v, %v", ic, err)
	}
}

func hostOf(t testing.TB, controlPlane, infrastructure configv1.TopologyMode, change ...func(*operatorv1.IngressController)) ingress.Host {
	t.Helper()
	return newHost(t, fixture.ClusterOf(controlPlane, infrastructure), "", liveIC(change...))
}

func newHost(t testing.TB, cluster topology.Cluster, def configv1.DefaultPlacement, ic *operatorv1.IngressController) ingress.Host {
	t.Helper()
	host, err := ingress.NewHost(cluster, def, ic)
	if err != nil {
		t.Fatal(err)
	}
	return host
}

func must[T any](t testing.TB) func(T, error) T {
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
	return must[*appsv1.Deployment](t)(ingress.ShapeRouter(router, h))
}

// Errors must not result in the values of a highly available cluster.
func TestNewHostErrors(t *testing.T) {
	raw, half := fixture.ClusterOf(topologytest.SR, topologytest.SR), fixture.ClusterOf(topologytest.SR, topologytest.SR)
	raw.Infrastructure.Mode = "Quantum"
	half.ControlPlane = topology.Reading{}
	both := fixture.Expressing("a", metav1.LabelSelectorOpExists)
	both.MatchLabels = map[string]string{"b": ""}
	for name, test := range map[string]struct {
		cluster topology.Cluster
		ic      *operatorv1.IngressController
		want    error
	}{
		"nothing":                         {topology.Cluster{}, nil, topology.ErrClusterNotRead},
		"zero Cluster":                    {topology.Cluster{}, liveIC(), topology.ErrClusterNotRead},
		"platform only":                   {topology.Cluster{Platform: configv1.NonePlatformType}, liveIC(), topology.ErrClusterNotRead},
		"half a Cluster":                  {half, liveIC(), topology.ErrClusterNotRead},
		"an unknown mode":                 {raw, liveIC(), topology.ErrClusterNotRead},
		"no IngressController":            {fixture.ClusterOf(topologytest.SR, topologytest.SR), nil, ingress.ErrNoIngressController},
		"a label exists":                  {fixture.ClusterOf(topologytest.SR, topologytest.SR), liveIC(fixture.Labelled(fixture.Expressing("a", "Exists"))), ingress.ErrNodeSelector},
		"a label does not exist":          {fixture.ClusterOf(topologytest.SR, topologytest.SR), liveIC(fixture.Labelled(fixture.Expressing("a", "DoesNotExist"))), ingress.ErrNodeSelector},
		"a label is one of two":           {fixture.ClusterOf(topologytest.SR, topologytest.SR), liveIC(fixture.Labelled(fixture.Expressing("a", "In", "x", "y"))), ingress.ErrNodeSelector},
		"a label is one of none":          {fixture.ClusterOf(topologytest.SR, topologytest.SR), liveIC(fixture.Labelled(fixture.Expressing("a", "In"))), ingress.ErrNodeSelector},
		"a label is not one":              {fixture.ClusterOf(topologytest.SR, topologytest.SR), liveIC(fixture.Labelled(fixture.Expressing("a", "NotIn", "x"))), ingress.ErrNodeSelector},
		"a usable and an unusable one":    {fixture.ClusterOf(topologytest.HA, topologytest.HA), liveIC(fixture.Labelled(both)), ingress.ErrNodeSelector},
		"an operator that does not exist": {fixture.ClusterOf(topologytest.HA, topologytest.HA), liveIC(fixture.Labelled(fixture.Expressing("a", "Near", "x"))), ingress.ErrNodeSelector},
	} {
		host, err := ingress.NewHost(test.cluster, configv1.DefaultPlacementControlPlane, test.ic)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		if errors.Is(err, ingress.ErrNodeSelector) && !strings.Contains(err.Error(), "openshift-ingress-operator/default") {
			t.Errorf("%s: the error does not name the object: %v", name, err)
		}
		router, noRouter := ingress.ShapeRouter(manifest(), host)
		budget, noBudget := ingress.RouterPodDisruptionBudget(host, routerLabels)
		if router != nil || budget != nil {
			t.Errorf("%s: the zero Host has results", name)
		}
		for _, err := range []error{noRouter, noBudget} {
			if !errors.Is(err, ingress.ErrHost) {
				t.Errorf("%s: %v, want %v", name, err, ingress.ErrHost)
			}
		}
	}
}

var routerLabels = map[string]string{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"}

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

// Only routers of one revision have anti-affinity, so that a rollout needs no free node. Other affinity stays.
func TestShapeRouterAffinity(t *testing.T) {
	remote := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "node.openshift.io/remote-worker", Operator: "NotIn", Values: []string{""}}},
	}}}}
	near := &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100}}}
	antiAffinity := &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector:  &metav1.LabelSelector{MatchLabels: routerLabels},
		MatchLabelKeys: []string{"pod-template-hash"}, TopologyKey: "kubernetes.io/hostname",
	}}}
	available, single := hostOf(t, topologytest.HA, topologytest.HA, publishing(operatorv1.PrivateStrategyType)), hostOf(t, topologytest.SR, topologytest.SR)
	own := manifest(func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: remote, PodAffinity: near, PodAntiAffinity: &corev1.PodAntiAffinity{}}
	})
	for name, test := range map[string]struct {
		router *appsv1.Deployment
		host   ingress.Host
		want   *corev1.Affinity
	}{
		"highly available":          {manifest(), available, &corev1.Affinity{PodAntiAffinity: antiAffinity}},
		"an operator's own":         {own, available, &corev1.Affinity{NodeAffinity: remote, PodAffinity: near, PodAntiAffinity: antiAffinity}},
		"an operator's own, single": {own, single, &corev1.Affinity{NodeAffinity: remote, PodAffinity: near, PodAntiAffinity: &corev1.PodAntiAffinity{}}},
		"no selector":               {manifest(func(d *appsv1.Deployment) { d.Spec.Selector = nil }), available, nil},
	} {
		if diff := cmp.Diff(test.want, shaped(t, test.router, test.host).Spec.Template.Spec.Affinity); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What the stock operator shapes for the topology stays as it is (U-ING-6): another spelling would start a rollout on
// each cluster that is updated. It fills in the hash, by its place in the term, after the module.
func TestShapeRouterKeepsTheOperators(t *testing.T) {
	const deployment, hash = "ingresscontroller.operator.openshift.io/deployment-ingresscontroller", "ingresscontroller.operator.openshift.io/hash"
	term := func(unfilled metav1.LabelSelectorOperator) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: deployment, Operator: "In", Values: []string{"default"}}, {Key: hash, Operator: unfilled}},
		}}
	}
	apart := &corev1.Affinity{
		PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: 100, PodAffinityTerm: term("NotIn")},
		}},
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term("In")}},
	}
	ports, private := operatorv1.HostNetworkStrategyType, operatorv1.PrivateStrategyType
	for name, test := range map[string]struct {
		mode        configv1.TopologyMode
		publishes   operatorv1.EndpointPublishingStrategyType
		replicas    int32
		unavailable string
		surge       intstr.IntOrString
		affinity    *corev1.Affinity
	}{
		"several":                        {topologytest.HA, private, 2, "50%", intstr.FromString("25%"), apart},
		"several with host ports":        {topologytest.HA, ports, 2, "25%", intstr.FromInt32(0), nil},
		"one":                            {topologytest.SR, private, 1, "25%", intstr.FromString("25%"), nil},
		"one, by numbers":                {topologytest.SR, private, 1, "0%", intstr.FromInt32(1), nil},
		"one, with an empty affinity":    {topologytest.SR, private, 1, "25%", intstr.FromString("25%"), &corev1.Affinity{}},
		"one with host ports":            {topologytest.SR, ports, 1, "25%", intstr.FromInt32(0), nil},
		"one with host ports, by number": {topologytest.SR, ports, 1, "100%", intstr.FromInt32(0), nil},
	} {
		operators := manifest(func(d *appsv1.Deployment) {
			unavailable := intstr.FromString(test.unavailable)
			d.Spec.Replicas = &test.replicas
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxUnavailable: &unavailable, MaxSurge: &test.surge}}
			d.Spec.Template.Spec.Affinity = test.affinity
			d.Spec.Template.Spec.NodeSelector = map[string]string{"node-role.kubernetes.io/worker": "", "kubernetes.io/os": "linux"}
		})
		host := newHost(t, fixture.ClusterOf(topologytest.HA, test.mode), fixture.ToWorkers, liveIC(publishing(test.publishes)))
		if diff := cmp.Diff(operators, shaped(t, operators, host)); diff != "" {
			t.Errorf("%s (-operator's +shaped):\n%s", name, diff)
		}
	}
}

// U-ING-7: the strategy of the status, else of the spec, else of the platform.
func TestShapeRouterHostNetwork(t *testing.T) {
	asked := func(strategy operatorv1.EndpointPublishingStrategyType) func(*operatorv1.IngressController) {
		return func(ic *operatorv1.IngressController) {
			ic.Spec.EndpointPublishingStrategy = &operatorv1.EndpointPublishingStrategy{Type: strategy}
		}
	}
	unset, ports, private := fixture.Replicas(1), operatorv1.HostNetworkStrategyType, operatorv1.PrivateStrategyType
	for name, test := range map[string]struct {
		platform         configv1.PlatformType
		wanted, inEffect func(*operatorv1.IngressController)
		ports            bool
	}{
		"platform None":                   {configv1.NonePlatformType, unset, unset, true},
		"platform AWS":                    {configv1.AWSPlatformType, unset, unset, false},
		"platform bare metal":             {configv1.BareMetalPlatformType, unset, unset, true},
		"no platform":                     {"", unset, unset, true},
		"host network wanted on AWS":      {configv1.AWSPlatformType, asked(ports), unset, true},
		"private wanted on None":          {configv1.NonePlatformType, asked(private), unset, false},
		"in effect is not what is wanted": {configv1.NonePlatformType, asked(private), publishing(ports), true},
	} {
		cluster := fixture.ClusterOf(topologytest.SR, topologytest.SR)
		cluster.Platform = test.platform
		host := newHost(t, cluster, "", liveIC(fixture.Placed(fixture.Pinned(t)), test.wanted, test.inEffect))
		if unavailable, surge, _ := workload.Steps(shaped(t, manifest(), host).Spec.Strategy, 1); unavailable == surge || surge == 0 != test.ports {
			t.Errorf("%s: shaped for %d unavailable, surge %d; want host ports %v", name, unavailable, surge, test.ports)
		}
	}
}

func TestShapeRouterPlacement(t *testing.T) {
	const master, controlPlane, infra = "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/infra"
	type labels = map[string]string
	tolerate := func(keys ...string) []corev1.Toleration {
		list := []corev1.Toleration{{Key: "kubernetes.io/e2e-evict-taint-key", Operator: corev1.TolerationOpExists}}
		for _, key := range keys {
			list = append(list, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
		}
		return list
	}
	own, both := tolerate(), tolerate(master, controlPlane)
	custom := []corev1.Toleration{{Key: infra, Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](5)}}
	selecting := func(selector *metav1.LabelSelector) *operatorv1.NodePlacement {
		return &operatorv1.NodePlacement{NodeSelector: selector}
	}
	matching := func(l labels) *operatorv1.NodePlacement { return selecting(&metav1.LabelSelector{MatchLabels: l}) }
	mixed := fixture.Expressing(infra, "In", "")
	mixed.MatchLabels = labels{"disk": "fast"}
	workers, masters := labels{"node-role.kubernetes.io/worker": "", "kubernetes.io/os": "linux"}, labels{master: "", "kubernetes.io/os": "linux"}

	for name, test := range map[string]struct {
		def         configv1.DefaultPlacement
		placement   *operatorv1.NodePlacement
		pool        topology.Pool
		selector    labels
		tolerations []corev1.Toleration
	}{
		"nothing":                            {"", nil, topology.WorkerPool, workers, own},
		"default placement workers":          {fixture.ToWorkers, nil, topology.WorkerPool, workers, own},
		"default placement control plane":    {fixture.ToControlPlane, nil, topology.ControlPlanePool, masters, both},
		"unknown default placement":          {"Elsewhere", nil, topology.WorkerPool, workers, own},
		"pinned by this module":              {"", fixture.Pinned(t), topology.ControlPlanePool, labels{master: ""}, both[1:]},
		"masters without tolerations":        {"", matching(labels{master: ""}), topology.ControlPlanePool, labels{master: ""}, both},
		"the newer label":                    {"", matching(labels{controlPlane: ""}), topology.ControlPlanePool, labels{controlPlane: ""}, both},
		"masters by an expression":           {"", selecting(fixture.Expressing(master, "In", "")), topology.ControlPlanePool, labels{master: ""}, both},
		"moved":                              {fixture.ToControlPlane, fixture.Moved(), topology.WorkerPool, labels{infra: ""}, own},
		"moved by an expression":             {fixture.ToControlPlane, selecting(fixture.Expressing(infra, "In", "")), topology.WorkerPool, labels{infra: ""}, own},
		"moved by a label and an expression": {"", selecting(mixed), topology.WorkerPool, labels{infra: "", "disk": "fast"}, own},
		"every node":                         {fixture.ToControlPlane, matching(nil), topology.WorkerPool, labels{}, own},
		"custom tolerations":                 {fixture.ToControlPlane, &operatorv1.NodePlacement{Tolerations: custom}, topology.ControlPlanePool, masters, custom},
		"no tolerations": {fixture.ToControlPlane, &operatorv1.NodePlacement{Tolerations: []corev1.Toleration{}}, topology.ControlPlanePool,
			masters, []corev1.Toleration{}},
	} {
		for _, mode := range topologytest.AllModes {
			pool, selector, tolerations := test.pool, test.selector, test.tolerations
			if mode == topologytest.External {
				pool = topology.WorkerPool
				if test.placement == nil || test.placement.NodeSelector == nil {
					selector = workers
				}
				if test.placement == nil || test.placement.Tolerations == nil {
					tolerations = own
				}
			}
			host := newHost(t, fixture.ClusterOf(mode, topologytest.SR), test.def, liveIC(fixture.Placed(test.placement)))
			if got := ingress.PoolOf(host); got != pool {
				t.Errorf("%s, control plane %q: pool %s, want %s", name, mode, got, pool)
			}
			selecting := manifest(func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = labels{master: ""} })
			for from, router := range map[string]*appsv1.Deployment{"a manifest": manifest(), "a pinned router": selecting} {
				pod := shaped(t, router, host).Spec.Template.Spec
				if diff := cmp.Diff(selector, pod.NodeSelector); diff != "" {
					t.Errorf("%s, control plane %q, from %s, node selector (-want +got):\n%s", name, mode, from, diff)
				}
				if diff := cmp.Diff(tolerations, pod.Tolerations); diff != "" {
					t.Errorf("%s, control plane %q, from %s, tolerations (-want +got):\n%s", name, mode, from, diff)
				}
			}
		}
	}
}

// ShapeRouter does not change its inputs, is idempotent, and its results share no memory.
func TestShapeRouterIsPure(t *testing.T) {
	for name, test := range map[string]struct {
		mode      configv1.TopologyMode
		placement *operatorv1.NodePlacement
	}{
		"pinned":     {topologytest.SR, fixture.Pinned(t)},
		"workers":    {topologytest.HA, nil},
		"tolerating": {topologytest.HA, &operatorv1.NodePlacement{Tolerations: []corev1.Toleration{{Key: "a", TolerationSeconds: ptr.To[int64](1)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			build := func() *operatorv1.IngressController {
				return liveIC(fixture.Placed(test.placement.DeepCopy()), fixture.Replicas(1), publishing(operatorv1.PrivateStrategyType))
			}
			ic, router := build(), manifest()
			h := newHost(t, fixture.ClusterOf(test.mode, test.mode), "", ic)
			first := shaped(t, router, h)
			want := fixture.Text(t, first)
			same := func(after string, router *appsv1.Deployment) {
				t.Helper()
				if got := fixture.Text(t, shaped(t, router, h)); got != want {
					t.Errorf("another result %s:\n%s\n%s", after, want, got)
				}
			}
			if diff := cmp.Diff(manifest(), router); diff != "" {
				t.Errorf("the Deployment was changed (-before +after):\n%s", diff)
			}
			same("for a shaped router", first)
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
			same("after a change of the first", router)
			*ic.Spec.Replicas = 7
			if ic.Spec.NodePlacement != nil {
				ic.Spec.NodePlacement.Tolerations[0].Key = "late"
			}
			same("after a change of the IngressController", router)
		})
	}
}

// R-ING-7: on a single node without workers, which has both roles, pinning changes only node selector and tolerations.
func TestPinWithoutWorkers(t *testing.T) {
	node := labels.Set{"kubernetes.io/os": "linux",
		"node-role.kubernetes.io/master": "", "node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/worker": ""}
	for _, publishes := range []operatorv1.EndpointPublishingStrategyType{operatorv1.HostNetworkStrategyType, operatorv1.PrivateStrategyType} {
		var routers []*appsv1.Deployment
		var budgets []*policyv1.PodDisruptionBudget
		for _, placement := range []*operatorv1.NodePlacement{nil, fixture.Pinned(t)} {
			host := hostOf(t, topologytest.SR, topologytest.SR, publishing(publishes), fixture.Placed(placement))
			router := shaped(t, manifest(), host)
			if selector := router.Spec.Template.Spec.NodeSelector; !labels.SelectorFromSet(selector).Matches(node) {
				t.Errorf("%s: the only node does not fit %v", publishes, selector)
			}
			router.Spec.Template.Spec.NodeSelector, router.Spec.Template.Spec.Tolerations = nil, nil
			routers = append(routers, router)
			budgets = append(budgets, must[*policyv1.PodDisruptionBudget](t)(ingress.RouterPodDisruptionBudget(host, routerLabels)))
		}
		if diff := cmp.Diff(routers[0], routers[1]); diff != "" {
			t.Errorf("%s: the router (-not pinned +pinned):\n%s", publishes, diff)
		}
		if diff := cmp.Diff(budgets[0], budgets[1]); diff != "" {
			t.Errorf("%s: the budget (-not pinned +pinned):\n%s", publishes, diff)
		}
	}
}

// TestRouterRollout tests the numbers.
func TestRouterPodDisruptionBudget(t *testing.T) {
	labels := map[string]string{"a": "b"}
	want := &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-ingress", Name: "router-internal"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromString("25%")), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}
	host := hostOf(t, topologytest.HA, topologytest.HA, fixture.Replicas(3), func(ic *operatorv1.IngressController) { ic.Name = "internal" })
	got := must[*policyv1.PodDisruptionBudget](t)(ingress.RouterPodDisruptionBudget(host, labels))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("budget (-want +got):\n%s", diff)
	}
	got.Spec.Selector.MatchLabels["c"] = "d"
	if len(labels) != 1 {
		t.Error("changing the budget changed the labels that were passed in")
	}
}
