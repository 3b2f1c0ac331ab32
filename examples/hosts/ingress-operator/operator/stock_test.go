// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const finalizer = "ingresscontroller.operator.openshift.io/finalizer-ingresscontroller"

// An IngressController stays until its router is deleted.
func TestFinalizer(t *testing.T) {
	s := newSite(t, hosts()[0], ha, ha, nil, ingressController("internal", private))
	s.settled("internal")
	s.eventually("the finalizer", func() string {
		if !slices.Contains(s.ingressController("internal").Finalizers, finalizer) {
			return "there is none"
		}
		return ""
	})
	// Another finalizer delays the deletion of the router.
	key := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: routerNamespace, Name: "router-internal"}}
	change(s, key, func(d *appsv1.Deployment) { d.Finalizers = append(d.Finalizers, "example.com/mine") })
	if err := s.admin.Delete(t.Context(), ingressController("internal")); err != nil {
		t.Fatal(err)
	}
	s.eventually("that the router is deleted", func() string {
		d := &appsv1.Deployment{}
		if !s.find(routerNamespace, "router-internal", d) || d.DeletionTimestamp == nil || s.find(routerNamespace, "router-internal", &policyv1.PodDisruptionBudget{}) {
			return "it is not, or its budget is left"
		}
		return ""
	})
	// When this one is reconciled, the other has been too.
	s.create(ingressController("barrier", private))
	s.settled("barrier")
	if ic := s.ingressController("internal"); !slices.Contains(ic.Finalizers, finalizer) {
		t.Errorf("the finalizer is gone before the router: %v", ic.Finalizers)
	}
	change(s, key, func(d *appsv1.Deployment) { d.Finalizers = nil })
	s.eventually("that the IngressController is gone", func() string {
		if s.find(operatorNamespace, "internal", &operatorv1.IngressController{}) {
			return "it is not"
		}
		return ""
	})
}

// A missing value is set when the operator starts. An existing one stays.
func TestDefaultPlacement(t *testing.T) {
	start := func(t *testing.T, there configv1.DefaultPlacement, nodes ...string) *site {
		t.Helper()
		s := prepareSite(t, sr, sr, ingressController("default"))
		for _, name := range nodes {
			s.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		if there != "" {
			s.eventually("setting the placement", func() string {
				config := &configv1.Ingress{}
				s.find("", "cluster", config)
				config.Status.DefaultPlacement = there
				if err := s.admin.Status().Update(t.Context(), config); err != nil {
					return err.Error()
				}
				return ""
			})
		}
		s.startHost(hosts()[0])
		s.settled("default")
		return s
	}
	for name, test := range map[string]struct {
		there configv1.DefaultPlacement
		nodes []string
		want  configv1.DefaultPlacement
	}{
		"one node":                  {"", []string{"master-0"}, configv1.DefaultPlacementControlPlane},
		"one node with a worker":    {"", []string{"master-0", "worker-0"}, configv1.DefaultPlacementWorkers},
		"one node, set explicitly":  {configv1.DefaultPlacementWorkers, []string{"master-0"}, configv1.DefaultPlacementWorkers},
		"two nodes, set explicitly": {configv1.DefaultPlacementControlPlane, []string{"master-0", "worker-0"}, configv1.DefaultPlacementControlPlane},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, test.there, test.nodes...)
			config := &configv1.Ingress{}
			if s.find("", "cluster", config); config.Status.DefaultPlacement != test.want {
				t.Errorf("default placement %q, want %q", config.Status.DefaultPlacement, test.want)
			}
		})
	}
}

// The canary exists with the default router and is restored, but only with the flag.
func TestCanary(t *testing.T) {
	key := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: canaryNamespace, Name: "ingress-canary"}}
	s := newSite(t, hosts()[0], sr, sr, []string{"--canary"}, ingressController("default"))
	there := func(what string) {
		t.Helper()
		s.eventually(what, func() string {
			set := &appsv1.DaemonSet{}
			switch {
			case !s.find(key.Namespace, key.Name, set):
				return "there is none"
			case len(set.Spec.Template.Spec.Tolerations) != 1 || set.Spec.Template.Spec.Tolerations[0].Key != "node-role.kubernetes.io/infra":
				return "it tolerates other things"
			}
			return ""
		})
	}
	there("the canary")
	change(s, key.DeepCopy(), func(set *appsv1.DaemonSet) { set.Spec.Template.Spec.Tolerations = nil })
	there("that the canary is put back")
	if err := s.admin.Delete(t.Context(), key.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	there("a new canary")
}

func TestNoCanary(t *testing.T) {
	s := newSite(t, hosts()[0], sr, sr, nil, ingressController("default"))
	s.settled("default")
	if s.find(canaryNamespace, "ingress-canary", &appsv1.DaemonSet{}) {
		t.Error("a canary that nobody asked for")
	}
}

// Of two available routers on a node the oldest is evicted. A single one, or one that is not available yet, stays.
func TestCrowdedRouters(t *testing.T) {
	s := newSite(t, hosts()[0], ha, ha, []string{"--min-ready-seconds=1"}, ingressController("default"), ingressController("internal", private))
	pod := func(name, router, node string, isReady bool) {
		t.Helper()
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: routerNamespace, Name: name, Labels: map[string]string{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": router},
			},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "router", Image: "router"}}},
		}
		s.create(p)
		t.Cleanup(func() {
			if err := s.admin.Delete(context.WithoutCancel(t.Context()), p, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		})
		p.Status.Phase = corev1.PodRunning
		ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Minute))}
		if isReady {
			ready.Status = corev1.ConditionTrue
		}
		p.Status.Conditions = []corev1.PodCondition{ready}
		if err := s.admin.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	pod("starting", "default", "node-0", false)
	pod("alone", "default", "node-1", true)
	pod("other-0", "internal", "node-0", true)
	pod("other-1", "internal", "node-0", true)
	pod("older", "default", "node-0", true)
	pod("younger", "default", "node-0", true)
	evicted := func() (gone []string) {
		var pods corev1.PodList
		if err := s.admin.List(t.Context(), &pods, client.InNamespace(routerNamespace)); err != nil {
			t.Fatal(err)
		}
		for i := range pods.Items {
			if pods.Items[i].DeletionTimestamp != nil {
				gone = append(gone, pods.Items[i].Name)
			}
		}
		return gone
	}
	s.eventually("the eviction", func() string {
		if len(evicted()) == 0 {
			return "none"
		}
		return ""
	})
	if got := evicted(); !slices.Equal(got, []string{"older"}) {
		t.Errorf("evicted %v, want the older of the two", got)
	}
}
