// SPDX-License-Identifier: Apache-2.0

package standin_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
	"github.com/solonode/sno/testcluster/standin"
)

const (
	single   = configv1.SingleReplicaTopologyMode
	many     = configv1.HighlyAvailableTopologyMode
	external = configv1.ExternalTopologyMode

	// user is the user name of stand-ins.
	user = "stand-in"
)

// The tests set the endpoints of the kubernetes Service.
var shared = apiserver.NewShared(apiserver.Options{Flags: map[string]string{"endpoint-reconciler-type": "none"}, CRDs: []string{
	crds.Infrastructures, crds.Ingresses, crds.IngressControllers, crds.Authentications, crds.ClusterOperators,
	"etcds.operator.openshift.io", "consoles.operator.openshift.io", "machines.machine.openshift.io",
	"machineconfigurations.operator.openshift.io", "machineconfigpools.machineconfiguration.openshift.io", "machineconfigs.machineconfiguration.openshift.io",
}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// site is an API server with a stand-in, on which the test acts as everybody else.
type site struct {
	*testing.T
	server *apiserver.Server
	admin  client.WithWatch
	stop   func()
}

// newSite creates namespaces, an Infrastructure and objects, which are deleted at the end of the test with all objects of
// these kinds. No stand-in runs yet.
func newSite(t *testing.T, namespaces []string, kinds []client.Object, objects ...client.Object) *site {
	t.Helper()
	server := shared.Server(t)
	apiserver.NoError(t, mcfgv1.Install(server.Scheme()))
	s := &site{T: t, server: server, admin: server.Admin(t), stop: func() {}}
	for _, name := range namespaces {
		s.must(client.IgnoreAlreadyExists(s.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, kind := range append(slices.Clone(kinds), &configv1.Infrastructure{}, &corev1.Node{}) {
			for _, namespace := range append(namespaces, "") {
				err := s.admin.DeleteAllOf(ctx, kind, client.InNamespace(namespace), client.GracePeriodSeconds(0))
				if err != nil && !apierrors.IsMethodNotSupported(err) && !apierrors.IsNotFound(err) {
					s.Errorf("clearing %T: %v", kind, err)
				}
			}
		}
	})
	s.create(infrastructure())
	s.create(objects...)
	return s
}

// start runs a stand-in until the end of the test, or end.
func (s *site) start(options standin.Options) {
	s.Helper()
	operator, err := options.Operator()
	s.must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan error, 1)
	config := s.server.Config(s, user, "system:masters")
	go func() { done <- operator.Run(ctx, config) }()
	s.stop = func() {
		s.stop = func() {}
		cancel()
		if err := <-done; err != nil {
			s.Errorf("the stand-in failed: %v", err)
		}
	}
	s.Cleanup(s.end)
}

// end ends the stand-in.
func (s *site) end() { s.stop() }

// must ends the test on an error.
func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// create creates copies of objects.
func (s *site) create(objects ...client.Object) {
	s.Helper()
	for _, object := range objects {
		s.must(s.admin.Create(s.Context(), object.DeepCopyObject().(client.Object)))
	}
}

// eventually waits until the check returns nil.
func (s *site) eventually(what string, check func() error) {
	s.Helper()
	apiserver.Eventually(s, what, check)
}

// get reads an object into itself, and reports whether there is one.
func (s *site) get(object client.Object) bool {
	s.Helper()
	err := s.admin.Get(s.Context(), client.ObjectKeyFromObject(object), object)
	s.must(client.IgnoreNotFound(err))
	return err == nil
}

// change changes an object as a person.
func change[T client.Object](s *site, object T, change func(T)) {
	s.Helper()
	s.write(object, func() { change(object) }, func() error { return s.admin.Update(s.Context(), object) })
}

// changeStatus changes the status of an object.
func changeStatus[T client.Object](s *site, object T, change func(T)) {
	s.Helper()
	s.write(object, func() { change(object) }, func() error { return s.admin.Status().Update(s.Context(), object) })
}

func (s *site) write(object client.Object, change func(), write func() error) {
	s.Helper()
	s.eventually(fmt.Sprintf("changing %T %s", object, object.GetName()), func() error {
		if err := s.admin.Get(s.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change()
		return write()
	})
}

// topology sets the topology.
func (s *site) topology(controlPlane, workers configv1.TopologyMode) {
	s.Helper()
	changeStatus(s, infrastructure(), func(i *configv1.Infrastructure) {
		i.Status.ControlPlaneTopology, i.Status.InfrastructureTopology = controlPlane, workers
		i.Status.CPUPartitioning = configv1.CPUPartitioningNone
		i.Status.PlatformStatus = &configv1.PlatformStatus{Type: configv1.NonePlatformType}
	})
}

// masters creates nodes m0, m1...
func (s *site) masters(n int) {
	s.Helper()
	for i := range n {
		s.create(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "m" + strconv.Itoa(i), Labels: map[string]string{
				"node-role.kubernetes.io/master": "", "node-role.kubernetes.io/control-plane": "",
			}},
			Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "node-role.kubernetes.io/master", Effect: corev1.TaintEffectNoSchedule}}},
		})
	}
}

// rolledOut completes the rollout of a Deployment, as its controller does.
func (s *site) rolledOut(namespace, name string) {
	s.Helper()
	changeStatus(s, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, func(d *appsv1.Deployment) {
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}}
	})
}

// silent fails the test for writes of the stand-in that follow changes without meaning to its objects. An earlier write
// may come late on a busy machine, so it tries three times.
func (s *site) silent(objects ...client.Object) {
	s.Helper()
	objects = append(objects, infrastructure())
	var writes []apiserver.Write
	for range 3 {
		s.settle()
		writes = s.server.WritesDuring(s, user, func() {
			for _, object := range objects {
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

// settle waits until the stand-in has not written for a while.
func (s *site) settle() {
	s.Helper()
	const quiet = 300 * time.Millisecond
	writes, since := -1, time.Now()
	s.eventually("settling", func() error {
		if now := len(s.writes()); now != writes {
			writes, since = now, time.Now()
		}
		if time.Since(since) < quiet {
			return errors.New("a write just now")
		}
		return nil
	})
}

// writes are the requests with which the stand-in has written.
func (s *site) writes() []apiserver.Write {
	s.Helper()
	return s.server.Writes(s, user)
}

// touch causes an event.
func (s *site) touch(object client.Object) {
	s.Helper()
	body := fmt.Appendf(nil, `{"metadata":{"labels":{"example.com/touched":"%d"}}}`, time.Now().UnixNano())
	s.must(client.IgnoreNotFound(s.admin.Patch(s.Context(), object, client.RawPatch(types.MergePatchType, body))))
}

// conditions waits until conditions are "STATUS REASON".
func (s *site) conditions(read func() []operatorv1.OperatorCondition, want map[string]string) {
	s.Helper()
	s.eventually("the conditions", func() error {
		got := map[string]string{}
		for _, c := range read() {
			if _, wanted := want[c.Type]; wanted {
				got[c.Type] = strings.TrimSpace(string(c.Status) + " " + c.Reason)
			}
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("they are %v, want %v", got, want) //nolint:err113 // a test
		}
		return nil
	})
}

func infrastructure() *configv1.Infrastructure {
	return &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: standin.ConfigName}}
}
