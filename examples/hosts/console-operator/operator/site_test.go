// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"maps"
	"os"
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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/patchtest"
)

// shared is the API server of all tests. Without kube-apiserver and etcd they fail with a reference to `make
// kube-assets`.
var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{patchtest.Infrastructures, patchtest.Consoles, patchtest.ClusterOperators}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const (
	namespace = "openshift-console"
	user      = "console-operator"

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

// newSite creates the objects. They are deleted at the end of the test.
func newSite(t *testing.T, objects ...client.Object) *site {
	t.Helper()
	server := shared.Server(t)
	s := &site{T: t, server: server, admin: server.Admin(t)}
	for _, name := range []string{namespace, eventNamespace} {
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

func (s *site) start(options Options) {
	s.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan error, 1)
	config := s.server.Config(s, user, "system:masters")
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

func (s *site) clear() {
	ctx := context.WithoutCancel(s.Context())
	for _, each := range []struct {
		kind    client.Object
		options []client.DeleteAllOfOption
	}{
		{&appsv1.Deployment{}, []client.DeleteAllOfOption{client.InNamespace(namespace)}},
		{&policyv1.PodDisruptionBudget{}, []client.DeleteAllOfOption{client.InNamespace(namespace)}},
		{&configv1.Infrastructure{}, nil}, {&operatorv1.Console{}, nil}, {&configv1.ClusterOperator{}, nil},
	} {
		if err := s.admin.DeleteAllOf(ctx, each.kind, each.options...); err != nil {
			s.Errorf("clearing %T: %v", each.kind, err)
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

func consoleObject(state operatorv1.ManagementState) *operatorv1.Console {
	c := &operatorv1.Console{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	c.Spec.ManagementState = state
	return c
}

func (s *site) manage(state operatorv1.ManagementState) {
	s.Helper()
	change(s, consoleObject(""), func(c *operatorv1.Console) { c.Spec.ManagementState = state })
}

func infrastructure() *configv1.Infrastructure {
	return &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
}

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
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
type operands struct{ Console, Downloads *outcome }

func (s *site) expect(want operands) {
	s.Helper()
	s.eventually("the Deployments", func() string { return cmp.Diff(want, operands{s.operand("console"), s.operand("downloads")}) })
}

func (s *site) operand(name string) *outcome {
	s.Helper()
	live, budget := &appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}
	if !s.find(namespace, name, budget) {
		budget = nil
	}
	if !s.find(namespace, name, live) {
		if budget != nil {
			return &outcome{Budget: budget.Name} // without a Deployment
		}
		return nil
	}
	return ptr.To(outcomeOf(live, budget))
}

func (s *site) expectConditions(want map[string]string) {
	s.Helper()
	s.eventually("the conditions", func() string {
		live := consoleObject("")
		if !s.find("", "cluster", live) {
			return "no Console"
		}
		got := map[string]string{}
		for _, c := range live.Status.Conditions {
			if _, wanted := want[c.Type]; wanted {
				got[c.Type] = string(c.Status) + " " + c.Reason
			}
		}
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
		for _, object := range []client.Object{infrastructure(), consoleObject(""), deployment("console"), deployment("downloads")} {
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
