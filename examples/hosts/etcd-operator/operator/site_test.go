// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/patchtest"
)

// shared is the API server of all tests. Without kube-apiserver and etcd they fail with a reference to `make
// kube-assets`.
var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{patchtest.Infrastructures, "etcds.operator.openshift.io"}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const (
	namespace = "openshift-etcd"
	user      = "etcd-operator"

	ha       = configv1.HighlyAvailableTopologyMode
	sr       = configv1.SingleReplicaTopologyMode
	dual     = configv1.DualReplicaTopologyMode
	arbiter  = configv1.HighlyAvailableArbiterMode
	external = configv1.ExternalTopologyMode

	poll    = 50 * time.Millisecond
	timeout = 30 * time.Second
	// quietTime is how long the host must not write to count as settled.
	quietTime = time.Second
)

type site struct {
	*testing.T
	server *patchtest.APIServer
	admin  client.WithWatch
	etcd   string // URLs
}

// newSite creates an Infrastructure, an Etcd, control-plane nodes and members of etcd. At the end of the test the host
// stops and all are deleted.
func newSite(t *testing.T, mode configv1.TopologyMode, nodes []string, members ...string) *site {
	t.Helper()
	server := shared.Server(t)
	s := &site{T: t, server: server, admin: server.Admin(t), etcd: "http://127.0.0.1:1"}
	err := s.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	t.Cleanup(s.clear)
	if len(members) > 0 {
		s.etcd = startEtcd(t, members)
	}
	s.create(infrastructure())
	etcd := etcdObject()
	etcd.Spec.ManagementState = operatorv1.Managed
	s.create(etcd)
	s.topology(mode)
	for _, name := range nodes {
		s.addNode(name)
	}
	return s
}

func (s *site) start(arguments ...func(*Options)) {
	s.Helper()
	config := s.server.Config(s, user, "system:masters")
	options := DefaultOptions()
	options.Endpoints, options.MembersInterval = s.etcd, 100*time.Millisecond
	for _, change := range arguments {
		change(&options)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan error, 1)
	go func() { done <- Run(ctx, config, options) }()
	s.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.Errorf("the host failed: %v", err)
		}
	})
}

func (s *site) clear() {
	ctx := context.WithoutCancel(s.Context())
	now := client.GracePeriodSeconds(0)
	for _, each := range []struct {
		kind    client.Object
		options []client.DeleteAllOfOption
	}{
		{&corev1.Pod{}, []client.DeleteAllOfOption{client.InNamespace(namespace), now}},
		{&policyv1.PodDisruptionBudget{}, []client.DeleteAllOfOption{client.InNamespace(namespace)}},
		{&configv1.Infrastructure{}, nil}, {&operatorv1.Etcd{}, nil}, {&corev1.Node{}, nil},
	} {
		if err := s.admin.DeleteAllOf(ctx, each.kind, each.options...); err != nil {
			s.Errorf("clearing %T: %v", each.kind, err)
		}
	}
}

// startEtcd starts members of one etcd, which do not check reconfigurations, and returns their URLs.
func startEtcd(t *testing.T, names []string) string {
	t.Helper()
	binaries, err := patchtest.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	var clients, peers, all []string
	for _, name := range names {
		clients = append(clients, "http://"+patchtest.FreeAddress(t))
		peers = append(peers, "http://"+patchtest.FreeAddress(t))
		all = append(all, name+"="+peers[len(peers)-1])
	}
	for i, name := range names {
		// The shell kills etcd when its standard input is closed, also if the test's process ends.
		command := exec.Command("/bin/sh", "-c", `"$0" "$@" & read -r _; kill -9 $!; wait`, filepath.Join(binaries, "etcd"),
			"--name="+name, "--data-dir="+name, "--unsafe-no-fsync", "--strict-reconfig-check=false", "--log-level=error",
			"--listen-client-urls="+clients[i], "--advertise-client-urls="+clients[i], "--listen-peer-urls="+peers[i],
			"--initial-advertise-peer-urls="+peers[i], "--initial-cluster="+strings.Join(all, ","))
		command.Dir = folder
		stdin, err := command.StdinPipe()
		if err == nil {
			err = command.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = stdin.Close()
			_ = command.Wait() // it was killed
		})
	}
	return strings.Join(clients, ",")
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

func etcdObject() *operatorv1.Etcd {
	return &operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
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
	role := "master"
	if strings.HasPrefix(name, "arbiter") {
		role = "arbiter"
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/" + role: ""}}}
}

func (s *site) addNode(name string) {
	s.Helper()
	n := node(name)
	s.create(n)
	ready := n.DeepCopy()
	ready.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	// The operator may have changed the node already.
	if err := s.admin.Status().Patch(s.Context(), ready, client.MergeFrom(n)); err != nil {
		s.Fatal(err)
	}
}

// runEtcd creates the pod of etcd on a node, as its kubelet does.
func (s *site) runEtcd(node string) {
	s.Helper()
	s.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd-" + node, Labels: map[string]string{"etcd": "true"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "etcd", Image: "etcd"}}},
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

// outcome are the guards and the minimum of their budget, "" without one.
type outcome struct {
	Guards  []string
	Minimum string
}

// expect waits for guards, as a kubelet makes them ready or ends them.
func (s *site) expect(want outcome) {
	s.Helper()
	s.eventually("the guards", func() string {
		var got outcome
		for _, pod := range s.pods() {
			if pod.DeletionTimestamp != nil {
				s.delete(&pod)
				return "a guard is being deleted"
			}
			if !ready(&pod) && pod.Status.Phase != corev1.PodFailed {
				pod.Status.Phase, pod.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				if err := s.admin.Status().Update(s.Context(), &pod); err != nil {
					return err.Error()
				}
			}
			got.Guards = append(got.Guards, strings.TrimPrefix(pod.Name, "etcd-guard-")+" on "+pod.Spec.NodeName)
		}
		budget := &policyv1.PodDisruptionBudget{}
		err := s.admin.Get(s.Context(), client.ObjectKey{Namespace: namespace, Name: "etcd-guard-pdb"}, budget)
		if client.IgnoreNotFound(err) != nil {
			return err.Error()
		}
		if err == nil {
			got.Minimum = budget.Spec.MinAvailable.String()
		}
		return cmp.Diff(want, got)
	})
}

func (s *site) pods() []corev1.Pod {
	s.Helper()
	var pods corev1.PodList
	if err := s.admin.List(s.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels(guardLabels)); err != nil {
		s.Fatal(err)
	}
	return pods.Items
}

func (s *site) expectConditions(want map[string]string) {
	s.Helper()
	s.eventually("the conditions", func() string {
		live := etcdObject()
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

// expectMembers waits until etcd has these members.
func (s *site) expectMembers(want ...string) {
	s.Helper()
	s.eventually("the members", func() string {
		members, err := newEtcd(Options{Endpoints: strings.Split(s.etcd, ",")[0]}).members(s.Context())
		if err != nil {
			return err.Error()
		}
		var got []string
		for _, m := range members {
			got = append(got, m.Name)
		}
		slices.Sort(got)
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
			for _, object := range []client.Object{infrastructure(), etcdObject(), node("m0")} {
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
	change(s, object, func(o client.Object) {
		annotations := maps.Clone(o.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["example.com/touched"] = strconv.FormatInt(time.Now().UnixNano(), 10)
		o.SetAnnotations(annotations)
	})
}
