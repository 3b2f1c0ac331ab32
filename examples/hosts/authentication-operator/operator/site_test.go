// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/patchtest"
)

// shared is the API server of all tests. Without kube-apiserver and etcd they fail with a reference to `make
// kube-assets`.
var shared = patchtest.NewShared(patchtest.Options{
	CRDs: []string{patchtest.Infrastructures, patchtest.Authentications},
	// The tests set the endpoints of the kubernetes Service.
	Flags: map[string]string{"endpoint-reconciler-type": "none"},
})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const (
	serverNamespace = "openshift-authentication"
	apiServerSpace  = "openshift-oauth-apiserver"

	user = "authentication-operator"
	// living and dead are endpoints of the kubernetes Service. An EndpointSlice may not hold loopback addresses.
	living, dead = "192.0.2.1", "192.0.2.2"

	poll    = 50 * time.Millisecond
	timeout = 30 * time.Second
	// quietTime is how long the host must not write to count as settled.
	quietTime = time.Second
)

type site struct {
	*testing.T
	server *patchtest.APIServer
	admin  client.WithWatch
	stop   func()
}

// newSite creates the objects and starts the host. At the end of the test the host stops and the objects are deleted.
func newSite(t *testing.T, objects ...client.Object) *site {
	t.Helper()
	server := shared.Server(t)
	s := &site{T: t, server: server, admin: server.Admin(t)}
	for _, name := range []string{serverNamespace, apiServerSpace} {
		err := s.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.clear)
	for _, object := range objects {
		s.create(object)
	}
	return s
}

func (s *site) start(arguments ...func(*Options)) {
	s.Helper()
	start(s, s.server, arguments...)
}

func start(s *site, server *patchtest.APIServer, arguments ...func(*Options)) {
	s.Helper()
	config := server.Config(s, user, "system:masters")
	options := testOptions(config)
	for _, change := range arguments {
		change(&options)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan error, 1)
	go func() { done <- Run(ctx, config, options) }()
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			s.Errorf("the host failed: %v", err)
		}
	}
	s.Cleanup(s.stop)
}

// testOptions use the test's only API server as the living endpoint.
func testOptions(config *rest.Config) Options {
	options := DefaultOptions()
	options.WellKnownPath, options.WellKnownServerName, options.WellKnownInterval = "/readyz", "localhost", 100*time.Millisecond
	options.tries = wait.Backoff{Steps: 2, Duration: time.Millisecond}
	options.ConnectTo = Addresses{living + ":6443": strings.Trim(strings.TrimPrefix(config.Host, "https:"), "/"), dead + ":6443": "127.0.0.1:1"}
	return options
}

func (s *site) clear() {
	ctx := context.WithoutCancel(s.Context())
	for _, each := range []struct {
		kind    client.Object
		options []client.DeleteAllOfOption
	}{
		{&appsv1.Deployment{}, []client.DeleteAllOfOption{client.InNamespace(serverNamespace)}},
		{&appsv1.Deployment{}, []client.DeleteAllOfOption{client.InNamespace(apiServerSpace)}},
		{&policyv1.PodDisruptionBudget{}, []client.DeleteAllOfOption{client.InNamespace(serverNamespace)}},
		{&policyv1.PodDisruptionBudget{}, []client.DeleteAllOfOption{client.InNamespace(apiServerSpace)}},
		{&discoveryv1.EndpointSlice{}, []client.DeleteAllOfOption{client.InNamespace("default")}},
		{&configv1.Infrastructure{}, nil}, {&operatorv1.Authentication{}, nil}, {&corev1.Node{}, nil},
	} {
		if err := s.admin.DeleteAllOf(ctx, each.kind, each.options...); err != nil {
			s.Errorf("clearing %T: %v", each.kind, err)
		}
	}
}

func (s *site) create(object client.Object) {
	s.Helper()
	if err := s.admin.Create(s.Context(), object.DeepCopyObject().(client.Object)); err != nil {
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

func authentication(overrides string) *operatorv1.Authentication {
	a := &operatorv1.Authentication{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	a.Spec.ManagementState = operatorv1.Managed
	if overrides != "" {
		a.Spec.UnsupportedConfigOverrides.Raw = []byte(overrides)
	}
	return a
}

func (s *site) override(value string) {
	s.Helper()
	change(s, authentication(""), func(a *operatorv1.Authentication) { a.Spec.UnsupportedConfigOverrides.Raw = []byte(value) })
}

func infrastructure() *configv1.Infrastructure {
	return &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
}

func (s *site) topology(controlPlane, infrastructureTopology configv1.TopologyMode) {
	s.Helper()
	s.eventually("setting the topology", func() string {
		object := infrastructure()
		if err := s.admin.Get(s.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err.Error()
		}
		object.Status.ControlPlaneTopology, object.Status.InfrastructureTopology = controlPlane, infrastructureTopology
		object.Status.CPUPartitioning = configv1.CPUPartitioningNone
		object.Status.PlatformStatus = &configv1.PlatformStatus{Type: configv1.NonePlatformType}
		if err := s.admin.Status().Update(s.Context(), object); err != nil {
			return err.Error()
		}
		return ""
	})
}

func (s *site) masters(n int) {
	s.Helper()
	for i := range n {
		s.create(node("m"+strconv.Itoa(i), []string{"master", "control-plane"},
			corev1.Taint{Key: "node-role.kubernetes.io/master", Effect: corev1.TaintEffectNoSchedule}))
	}
}

func (s *site) apiServers(addresses ...string) {
	s.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "kubernetes-by-hand", Labels: map[string]string{"kubernetes.io/service-name": "kubernetes"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](6443)}},
		Endpoints: []discoveryv1.Endpoint{},
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
	}
	err := s.admin.Create(s.Context(), slice.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		change(s, slice.DeepCopy(), func(live *discoveryv1.EndpointSlice) { live.Endpoints = slice.Endpoints })
	} else if err != nil {
		s.Fatal(err)
	}
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
	if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		s.Fatal(err)
	}
	return err == nil
}

// operands are both Deployments; nil for a missing one.
type operands struct{ Server, APIServer *outcome }

func (s *site) expect(want operands) {
	s.Helper()
	s.eventually("the Deployments", func() string {
		return cmp.Diff(want, operands{
			s.operand(serverNamespace, "oauth-openshift", "oauth-openshift-pdb"), s.operand(apiServerSpace, "apiserver", "oauth-apiserver-pdb"),
		})
	})
}

func (s *site) operand(namespace, name, budgetName string) *outcome {
	s.Helper()
	deployment, budget := &appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}
	budgeted := "none"
	if s.find(namespace, budgetName, budget) {
		budgeted = budget.Name + " " + budget.Spec.MaxUnavailable.String()
	}
	if !s.find(namespace, name, deployment) {
		return nil
	}
	return ptr.To(outcomeOf(deployment, budgeted))
}

func (s *site) expectConditions(want map[string]string) {
	s.Helper()
	s.eventually("the conditions", func() string {
		live := authentication("")
		if !s.find("", "cluster", live) {
			return "no Authentication"
		}
		got := summary(s.T, live.Status.Conditions)
		maps.DeleteFunc(got, func(kind, _ string) bool { _, wanted := want[kind]; return !wanted })
		return cmp.Diff(want, got)
	})
}

func (s *site) settle() {
	s.Helper()
	writes, since := -1, time.Now()
	s.eventually("settling", func() string {
		now := len(s.server.Writes(s, user))
		if now != writes {
			writes, since = now, time.Now()
		}
		if time.Since(since) < quietTime {
			return fmt.Sprintf("%d writes, the last of them just now", now)
		}
		return ""
	})
}

// silent fails the test for writes of the host after events without a change.
func (s *site) silent() {
	s.Helper()
	s.writesNothing(func() {
		for _, object := range []client.Object{
			infrastructure(), authentication(""), node("m0", nil),
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: serverNamespace, Name: "oauth-openshift"}},
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: apiServerSpace, Name: "apiserver"}},
		} {
			if s.find(object.GetNamespace(), object.GetName(), object) {
				s.touch(object)
			}
		}
	})
}

// writesNothing fails the test for writes of the host that act causes. It tries three times, because an earlier write
// may come late on a busy machine.
func (s *site) writesNothing(act func()) {
	s.Helper()
	var writes []patchtest.Write
	for range 3 {
		s.settle()
		writes = s.server.WritesDuring(s, user, func() {
			act()
			s.settle()
		})
		if len(writes) == 0 {
			return
		}
	}
	s.Errorf("unneeded writes: %v", writes)
}

// touch causes an event without a relevant change.
func (s *site) touch(object client.Object) {
	s.Helper()
	change(s, object, func(o client.Object) {
		annotations := maps.Clone(o.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["example.com/touched"] = strconv.FormatInt(time.Now().UnixNano(), 10)
		o.SetAnnotations(annotations)
	})
}
