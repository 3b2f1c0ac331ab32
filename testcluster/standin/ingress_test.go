// SPDX-License-Identifier: Apache-2.0

package standin_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/standin/ingress"
)

const (
	routers = "openshift-ingress"
	canary  = "openshift-ingress-canary"
)

func ingressSite(t *testing.T, objects ...client.Object) *site {
	t.Helper()
	s := newSite(t, []string{"openshift-ingress-operator", routers, canary},
		[]client.Object{&configv1.Ingress{}, &appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}, &appsv1.DaemonSet{}, &corev1.Pod{}},
		&configv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}})
	t.Cleanup(func() { // the stand-in, which would remove their finalizers, has ended
		ctx := context.WithoutCancel(t.Context())
		var left operatorv1.IngressControllerList
		s.must(s.admin.List(ctx, &left))
		for i := range left.Items {
			left.Items[i].Finalizers = nil
			s.must(s.admin.Update(ctx, &left.Items[i]))
			s.must(client.IgnoreNotFound(s.admin.Delete(ctx, &left.Items[i])))
		}
	})
	s.topology(single, single)
	s.create(objects...)
	return s
}

func ingressController(name string, change ...func(*operatorv1.IngressControllerSpec)) *operatorv1.IngressController {
	ic := &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-ingress-operator", Name: name}}
	for _, change := range change {
		change(&ic.Spec)
	}
	return ic
}

func private(spec *operatorv1.IngressControllerSpec) {
	spec.EndpointPublishingStrategy = &operatorv1.EndpointPublishingStrategy{Type: operatorv1.PrivateStrategyType}
}

func onMasters(spec *operatorv1.IngressControllerSpec) {
	spec.NodePlacement = &operatorv1.NodePlacement{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/master": ""}}}
}

func replicas(n int32) func(*operatorv1.IngressControllerSpec) {
	return func(spec *operatorv1.IngressControllerSpec) { spec.Replicas = ptr.To(n) }
}

// router waits until a router and its budget are "REPLICAS UNAVAILABLE/SURGE SELECTOR TOLERATIONS AFFINITY, budget
// MAXUNAVAILABLE"; "" for none.
func (s *site) router(name, want string) {
	s.Helper()
	s.eventually("the router of "+name, func() error {
		meta := metav1.ObjectMeta{Namespace: routers, Name: "router-" + name}
		got, d, b := "", &appsv1.Deployment{ObjectMeta: meta}, &policyv1.PodDisruptionBudget{ObjectMeta: meta}
		if s.get(d) {
			pod := d.Spec.Template.Spec
			got = fmt.Sprintf("%d %s/%s %v", *d.Spec.Replicas, d.Spec.Strategy.RollingUpdate.MaxUnavailable, d.Spec.Strategy.RollingUpdate.MaxSurge,
				slices.Sorted(maps.Keys(pod.NodeSelector)))
			for _, toleration := range pod.Tolerations {
				got += " " + toleration.Key
			}
			if a := pod.Affinity; a != nil {
				got += fmt.Sprintf(" nodes %t, near %t, apart %t", a.NodeAffinity != nil, a.PodAffinity != nil, a.PodAntiAffinity != nil)
			}
		}
		if s.get(b) {
			got += ", budget " + b.Spec.MaxUnavailable.String()
		}
		if got != want {
			return fmt.Errorf("it is\n%s, want\n%s", got, want) //nolint:err113 // a test
		}
		return nil
	})
}

// Today's rules (U-ING-1, U-ING-2, U-ING-4, U-ING-8), and the module's.
func TestIngressFollowsTopology(t *testing.T) {
	const (
		worker   = "[kubernetes.io/os node-role.kubernetes.io/worker]"
		evict    = " kubernetes.io/e2e-evict-taint-key"
		floating = worker + evict + " nodes true, near false, apart false"
		spread   = worker + evict + " nodes true, near true, apart true"
	)
	for name, test := range map[string]struct {
		stock                bool
		objects              []client.Object
		one, two             string // the router "default" by infrastructureTopology
		placement            configv1.DefaultPlacement
		controlPlaneTopology configv1.TopologyMode
	}{
		"stock, host network": {stock: true, objects: []client.Object{ingressController("default")},
			one: "1 25%/0 " + floating + ", budget 50%", two: "2 25%/0 " + floating + ", budget 50%"},
		"stock, private": {stock: true, objects: []client.Object{ingressController("default", private)},
			one: "1 25%/25% " + floating + ", budget 50%", two: "2 50%/25% " + spread + ", budget 50%"},
		"stock, one replica": {stock: true, objects: []client.Object{ingressController("default", private, replicas(1))},
			one: "1 25%/25% " + floating, two: "1 50%/25% " + spread},
		"stock, defaultPlacement": {stock: true, objects: []client.Object{ingressController("default", private)}, placement: configv1.DefaultPlacementControlPlane,
			one: "1 25%/25% [kubernetes.io/os node-role.kubernetes.io/master]" + evict + ", budget 50%",
			two: "1 25%/25% [kubernetes.io/os node-role.kubernetes.io/master]" + evict + ", budget 50%"},
		"stock, pinned": {stock: true, objects: []client.Object{ingressController("default", private, onMasters)},
			one: "1 25%/25% [node-role.kubernetes.io/master]" + evict + " nodes true, near false, apart false, budget 50%",
			two: "2 50%/25% [node-role.kubernetes.io/master]" + evict + " nodes true, near true, apart true, budget 50%"},
		"vendored": {objects: []client.Object{ingressController("default", private)},
			one: "1 25%/25% " + worker, two: "2 50%/25% " + worker + " nodes false, near false, apart true, budget 50%"},
	} {
		t.Run(name, func(t *testing.T) {
			s := ingressSite(t, test.objects...)
			changeStatus(s, &configv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}, func(i *configv1.Ingress) {
				i.Status.DefaultPlacement = configv1.DefaultPlacementWorkers
				if test.placement != "" {
					i.Status.DefaultPlacement = test.placement
				}
			})
			options := ingress.DefaultOptions()
			options.Stock = test.stock
			s.start(options)
			for _, each := range []struct {
				infrastructure configv1.TopologyMode
				want           string
			}{{single, test.one}, {many, test.two}, {single, test.one}} {
				s.topology(single, each.infrastructure)
				s.router("default", each.want)
				s.silent(ingressController("default"), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: routers, Name: "router-default"}})
			}
			// What another client changes is put back, and another hash is on pods that move.
			router := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: routers, Name: "router-default"}}
			change(s, router, func(d *appsv1.Deployment) { d.Spec.Replicas, d.Spec.Template.Spec.Tolerations = ptr.To[int32](5), nil })
			s.router("default", test.one)
			before := router.Spec.Template.Labels["ingresscontroller.operator.openshift.io/hash"]
			change(s, ingressController("default"), func(ic *operatorv1.IngressController) {
				ic.Spec.NodePlacement = &operatorv1.NodePlacement{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"infra": ""}}}
			})
			s.eventually("another hash", func() error {
				if s.get(router); before == "" || router.Spec.Template.Labels["ingresscontroller.operator.openshift.io/hash"] == before {
					return errors.New("it is the same")
				}
				return nil
			})
			// The last topology counts while there is no Infrastructure.
			s.must(s.admin.Delete(t.Context(), &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}))
			s.create(ingressController("later", private, replicas(1)))
			s.eventually("another router", func() error {
				if !s.get(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: routers, Name: "router-later"}}) {
					return errors.New("there is none")
				}
				return nil
			})
		})
	}
}

// A default IngressController is created, also again, its finalizer keeps it until the router is gone, and the canary is
// there.
func TestIngressDefault(t *testing.T) {
	for _, stock := range []bool{true, false} {
		t.Run(fmt.Sprintf("stock %t", stock), func(t *testing.T) {
			s := ingressSite(t)
			options := ingress.DefaultOptions()
			options.Stock, options.CreateDefault, options.Canary = stock, true, true
			s.topology(external, single)
			s.start(options)
			s.create(ingressController("other"))
			s.eventually("another router", func() error {
				if !s.get(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: routers, Name: "router-other"}}) {
					return errors.New("there is none")
				}
				return nil
			})
			s.silent()
			if s.get(ingressController("default")) {
				t.Error("a default IngressController with an external control plane")
			}
			s.topology(single, single)
			ic, set := ingressController("default"), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: canary, Name: "ingress-canary"}}
			s.eventually("the default IngressController and the canary", func() error {
				if !s.get(ic) || !s.get(set) || ic.Status.ObservedGeneration != ic.Generation || len(ic.Finalizers) != 1 {
					return errors.New("not all are there")
				}
				return nil
			})
			if pinned := ic.Spec.NodePlacement != nil; pinned == stock || *ic.Spec.Replicas != 1 {
				t.Errorf("it is pinned: %t, with %d replicas", pinned, *ic.Spec.Replicas)
			}
			change(s, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: routers, Name: "router-default"}}, func(d *appsv1.Deployment) {
				d.Finalizers = []string{"example.com/mine"}
			})
			s.must(s.admin.Delete(t.Context(), ic))
			s.must(s.admin.Delete(t.Context(), set))
			s.silent()
			if again := ingressController("default"); !s.get(again) || again.UID != ic.UID || len(again.Finalizers) != 1 {
				t.Error("it did not wait for its router")
			}
			change(s, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: routers, Name: "router-default"}}, func(d *appsv1.Deployment) { d.Finalizers = nil })
			s.eventually("another one, and its canary", func() error {
				if again := ingressController("default"); !s.get(again) || again.UID == ic.UID || !s.get(set) {
					return errors.New("there is none")
				}
				return nil
			})
		})
	}
}

// The conditions follow the router, and those of others stay.
func TestIngressStatus(t *testing.T) {
	s := ingressSite(t, ingressController("default"))
	s.start(ingress.DefaultOptions())
	foreign := operatorv1.OperatorCondition{Type: "IngressTopologyPatchInForce", Status: operatorv1.ConditionTrue, LastTransitionTime: metav1.Now()}
	s.router("default", "1 25%/0 [kubernetes.io/os node-role.kubernetes.io/worker]")
	changeStatus(s, ingressController("default"), func(ic *operatorv1.IngressController) { ic.Status.Conditions = append(ic.Status.Conditions, foreign) })
	conditions := func() []operatorv1.OperatorCondition {
		ic := ingressController("default")
		s.get(ic)
		return ic.Status.Conditions
	}
	want := map[string]string{
		"Available": "False IngressControllerUnavailable", "Degraded": "True DegradedConditions", "Progressing": "True IngressControllerProgressing",
		"Admitted": "True Valid", "DeploymentAvailable": "False DeploymentUnavailable", "IngressTopologyPatchInForce": "True",
	}
	s.conditions(conditions, want)
	s.rolledOut(routers, "router-default")
	want["Available"], want["Degraded"], want["Progressing"], want["DeploymentAvailable"] = "True", "False", "False", "True DeploymentAvailable"
	s.conditions(conditions, want)
}

// An empty defaultPlacement is set once at the start (U-ING-3).
func TestIngressDefaultPlacement(t *testing.T) {
	for nodes, want := range map[int]configv1.DefaultPlacement{1: configv1.DefaultPlacementControlPlane, 2: configv1.DefaultPlacementWorkers} {
		s := ingressSite(t)
		s.masters(nodes)
		s.start(ingress.DefaultOptions())
		config := &configv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		s.eventually("the placement", func() error {
			if s.get(config); config.Status.DefaultPlacement != want {
				return fmt.Errorf("it is %q with %d nodes", config.Status.DefaultPlacement, nodes) //nolint:err113 // a test
			}
			return nil
		})
		s.end()
		s.must(s.admin.DeleteAllOf(t.Context(), &corev1.Node{}))
		s.must(s.admin.DeleteAllOf(t.Context(), &configv1.Infrastructure{}))
		s.must(s.admin.DeleteAllOf(t.Context(), &configv1.Ingress{}))
	}
}

// Of two available routers on a node the oldest is evicted, and no other pod.
func TestIngressCrowdedRouters(t *testing.T) {
	s := ingressSite(t, ingressController("default"))
	options := ingress.DefaultOptions()
	options.MinReadySeconds = 1
	s.start(options)
	for _, pod := range []struct {
		name, router, node string
		ready              corev1.ConditionStatus
	}{
		{"starting", "default", "n0", corev1.ConditionFalse}, {"alone", "default", "n1", corev1.ConditionTrue}, {"other-0", "internal", "n0", corev1.ConditionTrue},
		{"other-1", "internal", "n0", corev1.ConditionTrue}, {"older", "default", "n0", corev1.ConditionTrue}, {"younger", "default", "n0", corev1.ConditionTrue},
	} {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: routers, Name: pod.name,
				Labels: map[string]string{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": pod.router}},
			Spec: corev1.PodSpec{NodeName: pod.node, Containers: []corev1.Container{{Name: "router", Image: "router"}}},
		}
		s.create(p)
		changeStatus(s, p, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: pod.ready, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Minute))}}
		})
	}
	evicted := func() (gone []string) {
		var pods corev1.PodList
		s.must(s.admin.List(t.Context(), &pods, client.InNamespace(routers)))
		for i := range pods.Items {
			if pods.Items[i].DeletionTimestamp != nil {
				gone = append(gone, pods.Items[i].Name)
			}
		}
		return gone
	}
	s.eventually("the eviction", func() error {
		if len(evicted()) == 0 {
			return errors.New("none")
		}
		return nil
	})
	if diff := cmp.Diff([]string{"older"}, evicted()); diff != "" {
		t.Errorf("evicted (-want +got):\n%s", diff)
	}
}
