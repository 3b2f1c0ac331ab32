// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/patchtest"
)

const (
	operatorNamespace = "openshift-ingress-operator"
	routerNamespace   = "openshift-ingress"
	canaryNamespace   = "openshift-ingress-canary"

	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	external = configv1.ExternalTopologyMode

	poll    = 50 * time.Millisecond
	timeout = 30 * time.Second
)

type site struct {
	*testing.T
	server *patchtest.APIServer
	admin  client.WithWatch
	// earlier is the number of write requests of former tests.
	earlier int
	user    string
}

// newSite creates the objects and starts the host. At the end of the test the host stops and the objects are deleted.
func newSite(t *testing.T, h host, controlPlane, infrastructure configv1.TopologyMode, flags []string, objects ...client.Object) *site {
	t.Helper()
	s := prepareSite(t, controlPlane, infrastructure, objects...)
	s.startHost(h, flags...)
	return s
}

// prepareSite is newSite without a host.
func prepareSite(t *testing.T, controlPlane, infrastructure configv1.TopologyMode, objects ...client.Object) *site {
	t.Helper()
	server := shared.Server(t)
	s := &site{T: t, server: server, admin: server.Admin(t), user: "ingress-operator"}
	for _, name := range []string{operatorNamespace, routerNamespace, canaryNamespace} {
		err := s.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.clear)
	s.create(&configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}})
	s.topology(controlPlane, infrastructure)
	s.create(&configv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}})
	for _, object := range objects {
		s.create(object)
	}
	s.earlier = len(server.Writes(t, s.user))
	return s
}

func (s *site) startHost(h host, flags ...string) {
	s.Helper()
	h.start(s.T, s.server.Config(s, s.user, "system:masters"), flags...)
}

func (s *site) clear() {
	ctx := context.WithoutCancel(s.Context())
	for namespace, kinds := range map[string][]client.Object{
		operatorNamespace: {&operatorv1.IngressController{}},
		routerNamespace:   {&appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}},
		canaryNamespace:   {&appsv1.DaemonSet{}},
		"":                {&configv1.Infrastructure{}, &configv1.Ingress{}, &corev1.Node{}},
	} {
		for _, kind := range kinds {
			if err := s.admin.DeleteAllOf(ctx, kind, client.InNamespace(namespace)); err != nil {
				s.Errorf("clearing %T: %v", kind, err)
			}
		}
	}
	// Their operator has ended.
	var left operatorv1.IngressControllerList
	if err := s.admin.List(ctx, &left); err != nil {
		s.Error(err)
	}
	for i := range left.Items {
		none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := s.admin.Patch(ctx, &left.Items[i], none); client.IgnoreNotFound(err) != nil {
			s.Error(err)
		}
	}
}

func (s *site) create(object client.Object) {
	s.Helper()
	if err := s.admin.Create(s.Context(), object); err != nil {
		s.Fatal(err)
	}
}

func change[T client.Object](s *site, object T, mutate func(T)) {
	s.Helper()
	s.eventually(fmt.Sprintf("changing %T %s", object, object.GetName()), func() string {
		if err := s.admin.Get(s.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err.Error()
		}
		mutate(object)
		if err := s.admin.Update(s.Context(), object); err != nil {
			return err.Error()
		}
		return ""
	})
}

// touch causes an event by a label. An annotation of a Deployment would raise its generation, which causes a write by
// library-go.
func (s *site) touch(object client.Object) {
	s.Helper()
	change(s, object, func(o client.Object) {
		labels := maps.Clone(o.GetLabels())
		if labels == nil {
			labels = map[string]string{}
		}
		labels["example.com/touched"] = strconv.FormatInt(time.Now().UnixNano(), 10)
		o.SetLabels(labels)
	})
}

func (s *site) topology(controlPlane, infrastructure configv1.TopologyMode) {
	s.Helper()
	s.eventually("setting the topology", func() string {
		object := &configv1.Infrastructure{}
		if err := s.admin.Get(s.Context(), client.ObjectKey{Name: "cluster"}, object); err != nil {
			return err.Error()
		}
		object.Status.ControlPlaneTopology, object.Status.InfrastructureTopology = controlPlane, infrastructure
		object.Status.CPUPartitioning = configv1.CPUPartitioningNone
		object.Status.PlatformStatus = &configv1.PlatformStatus{Type: configv1.NonePlatformType}
		if err := s.admin.Status().Update(s.Context(), object); err != nil {
			return err.Error()
		}
		return ""
	})
}

func (s *site) eventually(what string, problem func() string) {
	s.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(s.Context(), poll, timeout, true, func(context.Context) (bool, error) {
		last = problem()
		return last == "", nil
	})
	if err != nil {
		s.Fatalf("%s: %v: %s", what, err, last)
	}
}

func (s *site) find(namespace, name string, into client.Object) bool {
	s.Helper()
	err := s.admin.Get(s.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into)
	if client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	return err == nil
}

func (s *site) ingressController(name string) *operatorv1.IngressController {
	s.Helper()
	ic := &operatorv1.IngressController{}
	if !s.find(operatorNamespace, name, ic) {
		s.Fatalf("there is no IngressController %s", name)
	}
	return ic
}

// router is a short form of a router and its budget.
type router struct {
	Replicas           int32
	Unavailable, Surge string
	NodeSelector       map[string]string
	Tolerates          []string
	HostPorts          []int32
	Apart              bool
	Budget             string
}

func (s *site) expectRouter(ingressController string, want *router) {
	s.Helper()
	s.eventually("the router of "+ingressController, func() string {
		var got *router
		deployment := &appsv1.Deployment{}
		if s.find(routerNamespace, "router-"+ingressController, deployment) {
			got = describe(deployment)
		}
		budget := &policyv1.PodDisruptionBudget{}
		if s.find(routerNamespace, "router-"+ingressController, budget) {
			if got == nil {
				return "a budget without a router"
			}
			got.Budget = budget.Spec.MaxUnavailable.String()
		}
		return cmp.Diff(want, got)
	})
}

func describe(deployment *appsv1.Deployment) *router {
	pod := deployment.Spec.Template.Spec
	got := &router{
		Replicas:     *deployment.Spec.Replicas,
		Unavailable:  deployment.Spec.Strategy.RollingUpdate.MaxUnavailable.String(),
		Surge:        deployment.Spec.Strategy.RollingUpdate.MaxSurge.String(),
		NodeSelector: pod.NodeSelector,
		Apart:        pod.Affinity != nil && pod.Affinity.PodAntiAffinity != nil,
	}
	for _, toleration := range pod.Tolerations {
		got.Tolerates = append(got.Tolerates, toleration.Key)
	}
	for _, port := range pod.Containers[0].Ports {
		if port.HostPort != 0 {
			got.HostPorts = append(got.HostPorts, port.HostPort)
		}
	}
	return got
}

// settled waits until the host has written the status of the spec, its last write for an IngressController.
func (s *site) settled(ingressController string) {
	s.Helper()
	s.eventually("the status of "+ingressController, func() string {
		ic := s.ingressController(ingressController)
		if ic.Status.ObservedGeneration != ic.Generation || len(ic.Status.Conditions) == 0 {
			return fmt.Sprintf("generation %d, observed %d, conditions %v", ic.Generation, ic.Status.ObservedGeneration, ic.Status.Conditions)
		}
		return ""
	})
}

// writes are the host's write requests in this test.
func (s *site) writes() []patchtest.Write {
	s.Helper()
	return s.server.Writes(s, s.user)[s.earlier:]
}
