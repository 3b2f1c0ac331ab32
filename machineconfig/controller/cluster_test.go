package controller

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/manager"
	"github.com/solonode/sno/patch/metrics"
	"github.com/solonode/sno/patch/patchtest"
)

const (
	sr = configv1.SingleReplicaTopologyMode
	ha = configv1.HighlyAvailableTopologyMode

	account         = "machineconfig-controller"
	systemNamespace = "sno-system"
	// us is how the audit log calls the controller.
	us = "system:serviceaccount:" + systemNamespace + ":" + account

	master, worker = "master", "worker"
)

// cluster is what a cluster looks like to the controller. Nothing acts in it: no kubelet ends a pod, so those of these tests have
// nothing to end and go as soon as they are evicted.
type cluster struct {
	*testing.T
	server *patchtest.APIServer
	admin  client.WithWatch
	// namespace is for the pods of this test.
	namespace string
}

// newCluster has the controller's permissions and, of the cluster's objects, only the Infrastructure.
func newCluster(t *testing.T, server *patchtest.APIServer, mode configv1.TopologyMode) *cluster {
	t.Helper()
	c := &cluster{T: t, server: server, admin: server.Admin(t)}
	err := c.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	for _, u := range patchtest.Manifests(t, "../config", "rbac/service_account.yaml", "rbac/role.yaml", "rbac/role_binding.yaml") {
		server.Put(t, u)
	}
	c.namespace = server.Namespace(t)
	t.Cleanup(c.clear)
	c.must(c.admin.Create(t.Context(), &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}))
	c.accept(mode)
	c.flip(mode)
	return c
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// clear removes what there is only one of, so that the next test starts afresh.
func (c *cluster) clear() {
	ctx := context.WithoutCancel(c.Context())
	for _, u := range []*unstructured.Unstructured{
		object("config.openshift.io/v1", "Infrastructure", ""), object("v1", "Node", ""), object("operator.openshift.io/v1", "MachineConfiguration", ""),
		object("machineconfiguration.openshift.io/v1", "MachineConfigPool", ""), object("machineconfiguration.openshift.io/v1", "ControllerConfig", ""),
		object("machineconfiguration.openshift.io/v1", "KubeletConfig", ""), object("machineconfiguration.openshift.io/v1", "MachineConfig", ""),
	} {
		err := c.admin.DeleteAllOf(ctx, u)
		if err != nil && !apierrors.IsNotFound(err) && !strings.Contains(err.Error(), "no matches for kind") {
			c.Errorf("cleaning up %s: %v", u.GetKind(), err)
		}
	}
	for _, o := range []client.Object{&corev1.Pod{}, &policyv1.PodDisruptionBudget{}} {
		if err := c.admin.DeleteAllOf(ctx, o, client.InNamespace(c.namespace), client.GracePeriodSeconds(0)); err != nil {
			c.Errorf("cleaning up: %v", err)
		}
	}
}

func object(apiVersion, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetName(name)
	return u
}

// flip changes the topology at run time.
func (c *cluster) flip(mode configv1.TopologyMode) {
	c.Helper()
	infrastructure := ha
	if mode == sr {
		infrastructure = sr
	}
	c.patchStatus(object("config.openshift.io/v1", "Infrastructure", "cluster"), fmt.Sprintf(
		`{"status":{"controlPlaneTopology":%q,"infrastructureTopology":%q,"cpuPartitioning":"None","platformStatus":{"type":"None"}}}`, mode, infrastructure))
}

func (c *cluster) patch(u client.Object, text string) {
	c.Helper()
	if err := c.admin.Patch(c.Context(), u, client.RawPatch(types.MergePatchType, []byte(text)), client.FieldOwner("agent")); err != nil {
		c.Fatalf("writing %s: %v", text, err)
	}
}

func (c *cluster) patchStatus(u client.Object, text string) {
	c.Helper()
	if err := c.admin.Status().Patch(c.Context(), u, client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
		c.Fatalf("writing %s: %v", text, err)
	}
}

// addNode adds a node that is Ready.
func (c *cluster) addNode(name string, roles ...string) {
	c.Helper()
	labels := map[string]string{}
	for _, role := range roles {
		labels["node-role.kubernetes.io/"+role] = ""
	}
	c.must(c.admin.Create(c.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}))
	c.patchStatus(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	// The API server gives a node that is new the taint of one that is not ready; nobody takes it off here, and nothing asks for it.
}

func (c *cluster) node(name string) *corev1.Node {
	c.Helper()
	node := &corev1.Node{}
	c.must(c.admin.Get(c.Context(), client.ObjectKey{Name: name}, node))
	return node
}

// ask writes a request onto a node, as its agent does. Without a text it takes it off.
func (c *cluster) ask(node, request string) {
	c.Helper()
	value := fmt.Sprintf("%q", request)
	if request == "" {
		value = "null"
	}
	c.patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, machineconfig.DesiredDrainAnnotation, value))
}

// answer is what the node was told last.
func (c *cluster) answer(node string) string {
	c.Helper()
	return c.node(node).Annotations[machineconfig.LastAppliedDrainAnnotation]
}

// is says how a node stands.
func (c *cluster) is(node, answer string, cordoned bool) func() error {
	return func() error {
		n := c.node(node)
		if got := n.Annotations[machineconfig.LastAppliedDrainAnnotation]; got != answer || n.Spec.Unschedulable != cordoned {
			return fmt.Errorf("node %s was answered %q and is cordoned: %v; want %q and %v", node, got, n.Spec.Unschedulable, answer, cordoned)
		}
		return nil
	}
}

// pod makes a pod that runs on a node.
func (c *cluster) pod(node, name string, change func(*corev1.Pod)) {
	c.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: ptr.To[int64](0), Containers: []corev1.Container{{Name: "main", Image: "none"}},
		},
	}
	if change != nil {
		change(pod)
	}
	c.must(c.admin.Create(c.Context(), pod))
	c.patchStatus(pod, `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
}

// pods names the pods that are left.
func (c *cluster) pods() []string {
	c.Helper()
	list := &corev1.PodList{}
	c.must(c.admin.List(c.Context(), list, client.InNamespace(c.namespace)))
	names := []string{}
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names
}

// budget protects the pod of that name. Nobody works out its status here, so the test says what it allows.
func (c *cluster) budget(name string, allowed int) {
	c.Helper()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
	}
	if err := c.admin.Create(c.Context(), budget); err != nil && !apierrors.IsAlreadyExists(err) {
		c.Fatal(err)
	}
	c.patchStatus(&policyv1.PodDisruptionBudget{ObjectMeta: budget.ObjectMeta}, fmt.Sprintf(
		`{"status":{"disruptionsAllowed":%d,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1,"observedGeneration":1}}`, allowed))
}

// released is a check that lets the pod of that name go each time before it looks. An eviction of somebody who was killed can be under way in the
// API server: it takes what the budget allows, and is cut off before it deletes the pod. The disruption controller works it out again.
func (c *cluster) released(name string, check func() error) func() error {
	return func() error {
		c.Helper()
		c.budget(name, 1)
		return check()
	}
}

// accept has the API server take a topology that the CRD of the oldest supported version does not know yet; newer clusters have it, and
// the module has to do right by it.
func (c *cluster) accept(mode configv1.TopologyMode) {
	c.Helper()
	if c.offer(mode) == nil {
		return
	}
	crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", patchtest.Infrastructures)
	c.must(c.admin.Get(c.Context(), client.ObjectKeyFromObject(crd), crd))
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	c.must(err)
	for _, version := range versions {
		at := []string{"schema", "openAPIV3Schema", "properties", "status", "properties", "controlPlaneTopology", "enum"}
		modes, has, err := unstructured.NestedSlice(version.(map[string]any), at...)
		if err != nil || !has {
			c.Fatalf("the CRD %s has no list of modes: %v", crd.GetName(), err)
		}
		c.must(unstructured.SetNestedSlice(version.(map[string]any), append(modes, string(mode)), at...))
	}
	c.must(unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	c.must(c.admin.Update(c.Context(), crd))
	patchtest.Eventually(c, fmt.Sprintf("the topology %s is accepted", mode), func() error { return c.offer(mode) })
}

// offer asks the API server whether it would take a topology.
func (c *cluster) offer(mode configv1.TopologyMode) error {
	return c.admin.Status().Patch(c.Context(), object("config.openshift.io/v1", "Infrastructure", "cluster"),
		mergePatch(fmt.Sprintf(`{"status":{"controlPlaneTopology":%q}}`, mode)), client.DryRunAll)
}

// pool makes a machine config pool for a role. spec is more of its spec, as JSON that begins with a comma.
func (c *cluster) pool(name, spec string) {
	c.Helper()
	u := &unstructured.Unstructured{}
	c.must(u.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfigPool",
		"metadata":{"name":%q,"labels":{"pools.operator.machineconfiguration.openshift.io/%s":""}},
		"spec":{"nodeSelector":{"matchLabels":{"node-role.kubernetes.io/%s":""}}%s}}`, name, name, name, spec)))
	c.must(c.admin.Create(c.Context(), u))
}

// installStock makes what shows that a machine-config operator is there.
func (c *cluster) installStock() {
	c.Helper()
	u := object("machineconfiguration.openshift.io/v1", "ControllerConfig", controllerConfigName)
	u.Object["spec"] = map[string]any{
		"additionalTrustBundle": nil, "baseOSContainerImage": "", "cloudProviderCAData": nil, "cloudProviderConfig": "", "clusterDNSIP": "",
		"dns": nil, "images": map[string]any{}, "infra": nil, "ipFamilies": "IPv4", "kubeAPIServerServingCAData": "Kg==", "network": nil,
		"proxy": nil, "releaseImage": "", "rootCAData": "Kg==",
	}
	c.must(c.admin.Create(c.Context(), u))
}

// looker looks like the program does, with its permissions, when the test says so.
type looker struct {
	*cluster
	*patcher
	told  *events.FakeRecorder
	clock *clocktesting.FakePassiveClock
	end   func()
	// fault answers a request in place of the API server; nil, or one that returns nil, does not. It is set before the first look.
	fault func(*http.Request) *http.Response
}

// faulty is the way to the API server of a looker.
type faulty struct {
	*looker
	next http.RoundTripper
}

func (f faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.fault != nil {
		if answer := f.fault(r); answer != nil {
			return answer, nil
		}
	}
	return f.next.RoundTrip(r)
}

func (c *cluster) looker(args ...string) *looker {
	c.Helper()
	module, options := &Module{}, manager.Options{}
	flags := flag.NewFlagSet("looker", flag.ContinueOnError)
	options.BindFlags(flags)
	module.BindFlags(flags)
	c.must(flags.Parse(args))
	c.must(module.Validate())
	counted, err := newTries(prometheus.NewRegistry())
	c.must(err)
	recorder, err := metrics.New(prometheus.NewRegistry())
	c.must(err)
	l := &looker{cluster: c, told: events.NewFakeRecorder(10000), clock: clocktesting.NewFakePassiveClock(time.Now())}
	config := c.server.Config(c, us, "system:serviceaccounts", "system:authenticated")
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return faulty{l, next} })
	kube, err := newKube(config)
	c.must(err)
	ours := c.server.Client(c, us, "system:serviceaccounts", "system:authenticated")
	l.patcher = module.newPatcher(kube, &apply.Applier{
		Client: ours, Module: machineconfig.Name, ForceConflicts: options.ForceConflicts, DryRun: options.DryRun, Recorder: recorder,
	})
	l.reader, l.live, l.metadata = ours, ours, ours
	l.patcher.clock, l.nodes.events, l.nodes.tries = l.clock, l.told, counted
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = l.drains.Start(ctx) // it returns no error
	}()
	l.end = func() {
		cancel()
		<-ended
	}
	c.Cleanup(l.end)
	return l
}

// once looks once.
func (l *looker) once() patch.Result {
	l.Helper()
	_, result, err := l.look(l.Context())
	l.must(err)
	return result
}

// rest looks until no try is under way and none is due at once, and returns what there is to say then.
func (l *looker) rest() patch.Result {
	l.Helper()
	var result patch.Result
	patchtest.Eventually(l, "it comes to rest", func() error {
		result = l.once()
		if running := l.drains.running(); len(running) > 0 {
			return fmt.Errorf("%v are drained", running)
		}
		result = l.once()
		if running := l.drains.running(); len(running) > 0 {
			return fmt.Errorf("%v are drained", running)
		}
		return nil
	})
	return result
}

// says fails the test unless the result is this one.
func (l *looker) says(got patch.Result, state patch.State, reason string) {
	l.Helper()
	if got.State != state || got.Reason != reason {
		l.Errorf("it says %s, want %s (%s)", got, state, reason)
	}
}

// heard waits until an event has all the texts.
func (l *looker) heard(texts ...string) {
	l.Helper()
	var heard []string
	patchtest.Eventually(l, fmt.Sprintf("an event tells %q", texts), func() error {
		for {
			select {
			case event := <-l.told.Events:
				heard = append(heard, event)
				if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(event, text) }) {
					return nil
				}
			default:
				return errors.New(strings.Join(heard, "\n"))
			}
		}
	})
}

// atRest fails the test for anything that is written by looking again.
func (l *looker) atRest() {
	l.Helper()
	l.server.NoWrites(l, us, func() {
		for range 3 {
			l.once()
		}
	})
}

func mergePatch(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }

func fieldOwner(name string) client.FieldOwner { return client.FieldOwner(name) }

// replicaSet is what the pods of a workload belong to.
func replicaSet(namespace string) *appsv1.ReplicaSet {
	labels := map[string]string{"app": "set"}
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "set"}, Spec: appsv1.ReplicaSetSpec{
		Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi"),
				}},
			}}},
		},
	}}
}

func (c *cluster) ownedByReplicaSet() []metav1.OwnerReference {
	c.Helper()
	set := &appsv1.ReplicaSet{}
	c.must(c.admin.Get(c.Context(), client.ObjectKey{Namespace: c.namespace, Name: "set"}, set))
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: ptr.To(true)}}
}
