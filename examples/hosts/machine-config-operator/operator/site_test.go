// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/patchtest"
)

// shared is the API server of all tests. Without kube-apiserver and etcd they fail with a reference to `make
// kube-assets`.
var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{
	patchtest.Infrastructures, "machineconfigurations.operator.openshift.io",
	"machineconfigpools.machineconfiguration.openshift.io", "machineconfigs.machineconfiguration.openshift.io",
}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const (
	user   = "machine-config-operator"
	prefix = "machineconfiguration.openshift.io/"

	ha   = configv1.HighlyAvailableTopologyMode
	sr   = configv1.SingleReplicaTopologyMode
	dual = configv1.DualReplicaTopologyMode

	poll    = 50 * time.Millisecond
	timeout = 30 * time.Second
	// quietTime is how long the host must not write to count as settled.
	quietTime = time.Second
)

type site struct {
	*testing.T
	server *patchtest.APIServer
	admin  client.WithWatch
}

// newSite creates an Infrastructure, a MachineConfiguration and nodes. At the end of the test the host stops and all
// are deleted.
func newSite(t *testing.T, mode configv1.TopologyMode, nodes ...string) *site {
	t.Helper()
	server := shared.Server(t)
	if err := mcfgv1.Install(server.Scheme()); err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, server: server, admin: server.Admin(t)}
	t.Cleanup(s.clear)
	s.create(infrastructure())
	// The typed object would set more fields.
	operator := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"managementState": "Managed"}}}
	operator.SetGroupVersionKind(operatorv1.GroupVersion.WithKind("MachineConfiguration"))
	operator.SetName("cluster")
	s.create(operator)
	s.topology(mode)
	for _, name := range nodes {
		s.addNode(name)
	}
	return s
}

func (s *site) start(arguments ...func(*Options)) (stop func()) {
	s.Helper()
	config := s.server.Config(s, user, "system:masters")
	options := DefaultOptions()
	options.ShutdownSettle = 200 * time.Millisecond
	for _, change := range arguments {
		change(&options)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan error, 1)
	go func() { done <- Run(ctx, config, options) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			s.Errorf("the host failed: %v", err)
		}
	}
	s.Cleanup(stop)
	return stop
}

func (s *site) clear() {
	ctx := context.WithoutCancel(s.Context())
	inDefault := client.InNamespace(metav1.NamespaceDefault)
	for _, each := range []struct {
		kind    client.Object
		options []client.DeleteAllOfOption
	}{
		{&corev1.Pod{}, []client.DeleteAllOfOption{inDefault, client.GracePeriodSeconds(0)}},
		{&policyv1.PodDisruptionBudget{}, []client.DeleteAllOfOption{inDefault}},
		{&configv1.Infrastructure{}, nil}, {&operatorv1.MachineConfiguration{}, nil}, {&mcfgv1.MachineConfigPool{}, nil},
		{&mcfgv1.MachineConfig{}, nil}, {&corev1.Node{}, nil},
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

func (s *site) delete(object client.Object) {
	s.Helper()
	if err := s.admin.Delete(s.Context(), object, client.GracePeriodSeconds(0)); err != nil {
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

func infrastructure() *configv1.Infrastructure {
	return &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
}

func machineConfiguration() *operatorv1.MachineConfiguration {
	return &operatorv1.MachineConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
}

func (s *site) topology(mode configv1.TopologyMode) {
	s.Helper()
	s.eventually("setting the topology", func() string {
		object := infrastructure()
		if err := s.admin.Get(s.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err.Error()
		}
		object.Status.ControlPlaneTopology, object.Status.InfrastructureTopology = mode, ha
		object.Status.CPUPartitioning = configv1.CPUPartitioningNone
		object.Status.PlatformStatus = &configv1.PlatformStatus{Type: configv1.NonePlatformType}
		if err := s.admin.Status().Update(s.Context(), object); err != nil {
			return err.Error()
		}
		return ""
	})
}

func node(name string) *corev1.Node {
	role := map[byte]string{'m': "master", 'a': "arbiter", 'w': "worker"}[name[0]]
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/" + role: ""}}}
}

// addNode adds a node that is Ready and has the configuration "old".
func (s *site) addNode(name string) {
	s.Helper()
	n := node(name)
	n.Annotations = map[string]string{prefix + "currentConfig": "old", prefix + "desiredConfig": "old"}
	s.create(n)
	ready := n.DeepCopy()
	ready.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	// The operator may have changed the node already.
	if err := s.admin.Status().Patch(s.Context(), ready, client.MergeFrom(n)); err != nil {
		s.Fatal(err)
	}
}

// addPod adds a pod with a controller, which a kubelet would run.
func (s *site) addPod(name, node string) {
	s.Helper()
	s.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: name, Labels: map[string]string{"app": "x"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "x", UID: "x", Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: ptr.To[int64](0), Containers: []corev1.Container{{Name: "x", Image: "x"}},
		},
	})
}

// addPool adds a pool of a role with a target configuration.
func (s *site) addPool(role, target string, maxUnavailable intstr.IntOrString, paused bool) {
	s.Helper()
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: role}}
	pool.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + role: ""}}
	pool.Spec.Configuration.Name, pool.Spec.MaxUnavailable, pool.Spec.Paused = target, &maxUnavailable, paused
	s.create(pool)
}

// annotate writes annotations of a node as its daemon.
func (s *site) annotate(name string, values map[string]string) {
	s.Helper()
	change(s, node(name), func(n *corev1.Node) {
		for key, value := range values {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, prefix+key, value)
		}
	})
}

func (s *site) request(name, request string) {
	s.Helper()
	s.annotate(name, map[string]string{"desiredDrain": request})
}

// outcome describes a node: its annotation, whether it is cordoned, and its pods.
func (s *site) outcome(name, annotation string) string {
	s.Helper()
	n := node(name)
	if err := s.admin.Get(s.Context(), client.ObjectKeyFromObject(n), n); err != nil {
		s.Fatal(err)
	}
	text := n.Annotations[prefix+annotation]
	if n.Spec.Unschedulable {
		text += " cordoned"
	}
	var pods corev1.PodList
	if err := s.admin.List(s.Context(), &pods, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		s.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Spec.NodeName == name {
			text += " " + pod.Name
		}
	}
	return strings.TrimSpace(text)
}

// expectApplied waits for the outcomes of nodes by their acknowledgements.
func (s *site) expectApplied(want map[string]string) {
	s.Helper()
	s.expect("lastAppliedDrain", want)
}

func (s *site) expect(annotation string, want map[string]string) {
	s.Helper()
	s.eventually("the nodes' "+annotation, func() string {
		got := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			got[name] = s.outcome(name, annotation)
		}
		return cmp.Diff(want, got)
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

func (s *site) expectConditions(want map[string]string) {
	s.Helper()
	s.eventually("the conditions", func() string {
		live := machineConfiguration()
		if err := s.admin.Get(s.Context(), client.ObjectKeyFromObject(live), live); err != nil {
			return err.Error()
		}
		got := map[string]string{}
		for _, c := range live.Status.Conditions {
			got[c.Type] = string(c.Status) + " " + c.Reason
		}
		maps.DeleteFunc(got, func(kind, _ string) bool { _, wanted := want[kind]; return !wanted })
		return cmp.Diff(want, got)
	})
}

// silent fails the test for writes of the host after events without a change. It tries three times, because an earlier
// write may come late on a busy machine.
func (s *site) silent() {
	s.Helper()
	var writes []patchtest.Write
	for range 3 {
		s.settle()
		writes = s.server.WritesDuring(s, user, func() {
			for _, object := range []client.Object{infrastructure(), machineConfiguration(), node("m0")} {
				s.touch(object)
			}
			s.settle()
		})
		if len(writes) == 0 {
			return
		}
	}
	s.Errorf("unneeded writes: %v", writes)
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

// touch causes an event without a relevant change.
func (s *site) touch(object client.Object) {
	s.Helper()
	s.patch(object, fmt.Sprintf(`{"metadata":{"annotations":{"example.com/touched":"%d"}}}`, time.Now().UnixNano()))
}

func (s *site) patch(object client.Object, body string) {
	s.Helper()
	if err := s.admin.Patch(s.Context(), object, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		s.Fatal(err)
	}
}
