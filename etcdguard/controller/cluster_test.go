package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/manager"
	"github.com/solonode/sno/patch/patchtest"
)

const etcds = "etcds.operator.openshift.io"

// asJSON has the API server keep everything as JSON, so that a test can read etcd's history.
var asJSON = map[string]string{"storage-media-type": "application/json"}

var shared = patchtest.NewShared(patchtest.Options{
	CRDs: []string{patchtest.Infrastructures, patchtest.ClusterVersions, etcds}, Flags: asJSON,
})

func TestMain(m *testing.M) {
	patchtest.BeProgram(func(args []string) int { return manager.Main("etcdguard-controller", args, &Module{}) })
	os.Exit(shared.Main(m))
}

const (
	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	arbiter  = configv1.HighlyAvailableArbiterMode
	dual     = configv1.DualReplicaTopologyMode
	external = configv1.ExternalTopologyMode

	// Written out, so that a renamed constant is noticed.
	namespace, guardName = "openshift-etcd", "etcd-quorum-guard"
	fieldOwner           = "sno.solonode.github.io/etcdguard"

	// ourUser is who the controller is, to the API server, and cvo the cluster-version-operator, also as field manager.
	ourUser, cvo = "etcdguard-under-test", "cluster-version-operator"

	systemNamespace = "sno-system"

	patience = 60 * time.Second
	glance   = 50 * time.Millisecond
)

// expected is how many members a topology is installed with, and mayGo how many of n may be drained at once: the rules by hand.
func expected(mode configv1.TopologyMode) int {
	return map[configv1.TopologyMode]int{sr: 1, dual: 2, ha: 3, arbiter: 3}[mode]
}

func mayGo(mode configv1.TopologyMode, n int) int {
	if mode == dual && n == 2 {
		return 1
	}
	return (n - 1) / 2
}

// etcdOf is an etcd whose members are what the test says.
type etcdOf struct {
	mu      sync.Mutex
	members []etcdguard.Member
	err     error
	asked   int
	// meanwhile happens while it is asked.
	meanwhile func()
}

func (e *etcdOf) Members(context.Context) ([]etcdguard.Member, error) {
	if e.meanwhile != nil {
		e.meanwhile()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked++
	return slices.Clone(e.members), e.err
}

var errStillThere = errors.New("it is still there")

var errNoEtcd = errors.New("etcd does not answer")

// set says how many members there are, and how many of them are healthy; less than none for a list that cannot be read.
func (e *etcdOf) set(n, healthy int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.members, e.err = []etcdguard.Member{}, nil
	if healthy < 0 {
		e.members, e.err = nil, errNoEtcd
		return
	}
	for i := range n {
		e.members = append(e.members, etcdguard.Member{ID: uint64(i + 1), Healthy: i < healthy})
	}
}

// cluster is one without controllers: the test plays them.
type cluster struct {
	*testing.T
	server *patchtest.APIServer
	admin  client.WithWatch
	etcd   *etcdOf
	// endpoint is where programs ask for its members, once one was started.
	endpoint string
	nodes    int
}

func newCluster(t *testing.T, server *patchtest.APIServer) *cluster {
	t.Helper()
	c := &cluster{T: t, server: server, admin: server.Admin(t), etcd: &etcdOf{}}
	for _, name := range []string{namespace, systemNamespace} {
		c.must(client.IgnoreAlreadyExists(c.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	}
	c.allowEveryTopology()
	t.Cleanup(c.clear)
	return c
}

// allowEveryTopology lets the Infrastructure of an older OpenShift have the topologies that it does not know yet.
func (c *cluster) allowEveryTopology() {
	c.Helper()
	crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", patchtest.Infrastructures)
	c.must(c.admin.Get(c.Context(), client.ObjectKeyFromObject(crd), crd))
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	c.must(err)
	changed := false
	for _, version := range versions {
		path := []string{"schema", "openAPIV3Schema", "properties", "status", "properties", "controlPlaneTopology", "enum"}
		known, found, err := unstructured.NestedStringSlice(version.(map[string]any), path...)
		c.must(err)
		if !found || slices.Contains(known, string(dual)) {
			continue
		}
		changed = true
		c.must(unstructured.SetNestedStringSlice(version.(map[string]any), append(known, string(dual)), path...))
	}
	if changed {
		c.must(unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
		c.must(c.admin.Update(c.Context(), crd))
	}
}

// install is a healthy cluster of the topology with that many control-plane nodes, of a release that brings a static guard.
func install(t *testing.T, mode configv1.TopologyMode, n int) *cluster {
	t.Helper()
	c := newCluster(t, shared.Server(t))
	c.installAll(mode, n)
	return c
}

func (c *cluster) installAll(mode configv1.TopologyMode, n int) {
	c.Helper()
	c.create(&configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}, "installer")
	c.installVersion()
	c.installEtcd()
	c.installCertificates()
	c.become(mode, n)
	c.versionOperator().act()
}

func (c *cluster) installVersion() {
	c.Helper()
	v := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	v.Spec.ClusterID = "00000000-0000-4000-8000-000000000000"
	v.Spec.Overrides = []configv1.ComponentOverride{otherEntry}
	c.create(v, "installer")
}

var otherEntry = configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: "openshift-dns-operator", Name: "dns-operator", Unmanaged: true}

func (c *cluster) installEtcd() {
	c.Helper()
	e := object("operator.openshift.io/v1", "Etcd", "", "cluster")
	e.Object["spec"] = map[string]any{"managementState": "Managed"}
	c.create(e, "installer")
}

// installCertificates makes them without anything in them; that they are there is all that most tests need.
func (c *cluster) installCertificates() {
	c.Helper()
	c.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd-client"}}, "installer")
	c.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd-ca-bundle"}}, "installer")
}

// clear removes what there is only one of, so that the next test starts afresh.
func (c *cluster) clear() {
	ctx := context.WithoutCancel(c.Context())
	for _, u := range []*unstructured.Unstructured{
		object("config.openshift.io/v1", "Infrastructure", "", ""),
		object("config.openshift.io/v1", "ClusterVersion", "", ""),
		object("operator.openshift.io/v1", "Etcd", "", ""),
		object("apps/v1", "Deployment", namespace, ""),
		object("policy/v1", "PodDisruptionBudget", namespace, ""),
		object("v1", "Secret", namespace, ""),
		object("v1", "ConfigMap", namespace, ""),
		object("v1", "Node", "", ""),
		object("coordination.k8s.io/v1", "Lease", systemNamespace, ""),
		object("events.k8s.io/v1", "Event", "default", ""),
	} {
		err := c.admin.DeleteAllOf(ctx, u, client.InNamespace(u.GetNamespace()), client.GracePeriodSeconds(0))
		if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			c.Errorf("cleaning up %s: %v", u.GetKind(), err)
		}
	}
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) create(o client.Object, fieldManager string) {
	c.Helper()
	if err := c.admin.Create(c.Context(), o, client.FieldOwner(fieldManager)); err != nil {
		c.Fatalf("%s making %s: %v", fieldManager, o.GetName(), err)
	}
}

// edit writes as `oc patch --type=merge` would, as the field manager.
func (c *cluster) edit(u *unstructured.Unstructured, fieldManager, text string, subresource ...string) {
	c.Helper()
	raw := client.RawPatch(types.MergePatchType, []byte(text))
	var err error
	if len(subresource) > 0 {
		err = c.admin.Status().Patch(c.Context(), u, raw, client.FieldOwner(fieldManager))
	} else {
		err = c.admin.Patch(c.Context(), u, raw, client.FieldOwner(fieldManager))
	}
	if err != nil {
		c.Fatalf("%s writing %s: %v", fieldManager, text, err)
	}
}

func (c *cluster) eventually(what string, check func() error) {
	c.Helper()
	patchtest.Eventually(c, what, check)
}

// become makes it a healthy cluster of that topology and size.
func (c *cluster) become(mode configv1.TopologyMode, n int) {
	c.Helper()
	c.etcd.set(n, n)
	c.resize(mode, n)
	c.flip(mode)
}

// flip changes the topology at run time.
func (c *cluster) flip(mode configv1.TopologyMode) {
	c.Helper()
	infrastructure := mode
	if mode == external || mode == arbiter || mode == dual {
		infrastructure = ha
	}
	raw := client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
		`{"status":{"controlPlaneTopology":%q,"infrastructureTopology":%q,"cpuPartitioning":"None","platformStatus":{"type":"None"}}}`, mode, infrastructure))
	// The API server may need a moment to learn of a topology that allowEveryTopology allows.
	c.eventually("the topology is accepted", func() error {
		return c.admin.Status().Patch(c.Context(), object("config.openshift.io/v1", "Infrastructure", "", "cluster"), raw, client.FieldOwner("installer"))
	})
}

const (
	masterLabel  = "node-role.kubernetes.io/master"
	arbiterLabel = "node-role.kubernetes.io/arbiter"
)

// resize has n control-plane nodes, one of them an arbiter where the topology has one, and a worker that no count may see.
func (c *cluster) resize(mode configv1.TopologyMode, n int) {
	c.Helper()
	if c.nodes == 0 {
		c.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker", Labels: map[string]string{"node-role.kubernetes.io/worker": ""}}}, "kubelet")
	}
	for i := max(n, 1); i < c.nodes; i++ {
		c.must(c.admin.Delete(c.Context(), object("v1", "Node", "", nodeName(i)), client.GracePeriodSeconds(0)))
	}
	for i := c.nodes; i < n; i++ {
		c.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{masterLabel: ""}}}, "kubelet")
	}
	c.nodes = max(n, 1)
	last := fmt.Sprintf(`{"metadata":{"labels":{%q:"",%q:null}}}`, masterLabel, arbiterLabel)
	if mode == arbiter {
		last = fmt.Sprintf(`{"metadata":{"labels":{%q:"",%q:null}}}`, arbiterLabel, masterLabel)
	}
	for i := range c.nodes {
		text := fmt.Sprintf(`{"metadata":{"labels":{%q:"",%q:null}}}`, masterLabel, arbiterLabel)
		if i == 0 && c.nodes > 1 {
			text = last
		}
		if i == 0 {
			c.edit(object("v1", "Node", "", nodeName(i)), "kubelet", text)
		}
	}
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// get reads an object, nil when there is none.
func get[T any](c *cluster, o manager.Object) *T {
	c.Helper()
	_, typed, err := manager.Read[T](c.Context(), c.admin, o)
	c.must(err)
	return typed
}

func (c *cluster) deployment() *appsv1.Deployment {
	c.Helper()
	return get[appsv1.Deployment](c, deploymentObject)
}

func (c *cluster) budget() *policyv1.PodDisruptionBudget {
	c.Helper()
	return get[policyv1.PodDisruptionBudget](c, budgetObject)
}

func (c *cluster) version() *configv1.ClusterVersion {
	c.Helper()
	return get[configv1.ClusterVersion](c, versionObject)
}

func (c *cluster) operator() *operatorv1.Etcd {
	c.Helper()
	return get[operatorv1.Etcd](c, etcdObject)
}

// looker is a controller that looks when it is told to.
type looker struct {
	*cluster
	patcher *patcher
	fuse    *patchtest.Fuse
	// did are the actions that were carried out.
	did *[]string
}

// ourClients has one for each API server, because a client certificate takes long to make.
var ourClients = map[*patchtest.APIServer]struct {
	client.WithWatch
	*patchtest.Fuse
}{}

// looker makes a new controller, as after a restart.
func (c *cluster) looker(change ...func(*patcher)) *looker {
	c.Helper()
	ours, made := ourClients[c.server]
	if !made {
		config := c.server.Config(c, ourUser, "system:masters")
		ours.Fuse = &patchtest.Fuse{}
		config.Wrap(ours.Wrap)
		var err error
		ours.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: c.server.Scheme()})
		c.must(err)
		ourClients[c.server] = ours
	}
	ours.Reset()
	p := &patcher{live: ours, cache: ours, members: c.etcd, image: "cli", writer: writer{client: ours}}
	for _, f := range change {
		f(p)
	}
	return &looker{c, p, ours.Fuse, &[]string{}}
}

var writtenAction = regexp.MustCompile(`"msg"="Written" "action"="(\w+)"`)

// try looks once.
func (l *looker) try() (patch.Result, error) {
	log := funcr.New(func(_, text string) {
		if written := writtenAction.FindStringSubmatch(text); written != nil {
			*l.did = append(*l.did, written[1])
		}
	}, funcr.Options{})
	_, result, err := l.patcher.look(logr.NewContext(l.Context(), log))
	return result, err
}

// look looks once, and expects that to be possible.
func (l *looker) look() patch.Result {
	l.Helper()
	result, err := l.try()
	if err != nil {
		l.Fatal(err)
	}
	return result
}

// doing are the actions since the last call.
func (l *looker) doing() string {
	did := strings.Join(*l.did, " ")
	*l.did = nil
	return did
}

// settle has everybody act in turn until the controller writes nothing, and returns what it says then.
func (l *looker) settle() patch.Result {
	l.Helper()
	o := l.versionOperator()
	for range 12 {
		o.act()
		l.rollOut()
		var result patch.Result
		if writes := l.server.WritesDuring(l, ourUser, func() { result = l.look() }); len(writes) == 0 && !o.act() {
			return result
		}
	}
	l.Fatal("it does not come to rest")
	return patch.Result{}
}

// rollOut plays the Deployment controller: every guard is there and ready.
func (c *cluster) rollOut() {
	c.Helper()
	d := c.deployment()
	if d == nil || d.Status.ObservedGeneration == d.Generation {
		return
	}
	c.edit(deploymentObject.Unstructured(), "kube-controller-manager", fmt.Sprintf(
		`{"status":{"observedGeneration":%d,"replicas":%d,"updatedReplicas":%[2]d,"readyReplicas":%[2]d,"availableReplicas":%[2]d}}`,
		d.Generation, *d.Spec.Replicas), "status")
}

// want fails unless the result has the state and reason.
func (l *looker) want(got patch.Result, state patch.State, reason string) {
	l.Helper()
	if got.State != state || got.Reason != reason {
		l.Errorf("%v, want %s (%s)", got, state, reason)
	}
}

// atRest fails for any write request in three looks.
func (l *looker) atRest() {
	l.Helper()
	l.server.NoWrites(l, ourUser, func() {
		for range 3 {
			l.look()
		}
	})
}

// guard checks the guard that is there; no replicas for none.
func (c *cluster) guard(replicas, maxUnavailable int, ours bool) {
	c.Helper()
	c.must(c.hasGuard(replicas, maxUnavailable, ours))
}

func (c *cluster) hasGuard(replicas, maxUnavailable int, ours bool) error {
	_, d, errD := manager.Read[appsv1.Deployment](c.Context(), c.admin, deploymentObject)
	_, b, errB := manager.Read[policyv1.PodDisruptionBudget](c.Context(), c.admin, budgetObject)
	_, v, errV := manager.Read[configv1.ClusterVersion](c.Context(), c.admin, versionObject)
	if err := errors.Join(errD, errB, errV); err != nil {
		return err
	}
	if replicas == 0 {
		if d != nil || b != nil {
			return fmt.Errorf("a guard is there: Deployment %t, budget %t", d != nil, b != nil)
		}
		return nil
	}
	if d == nil || b == nil {
		return fmt.Errorf("the guard is not there: Deployment %t, budget %t", d != nil, b != nil)
	}
	if got := int(*d.Spec.Replicas); got != replicas || b.Spec.MinAvailable != nil || b.Spec.MaxUnavailable.IntValue() != maxUnavailable {
		return fmt.Errorf("%d replicas, minAvailable %v, maxUnavailable %v; want %d and %d", got, b.Spec.MinAvailable, b.Spec.MaxUnavailable, replicas, maxUnavailable)
	}
	for _, o := range []metav1.Object{d, b, v} {
		if applied := appliedBy(o, fieldOwner); applied != ours {
			return fmt.Errorf("%T is ours: %t, want %t", o, applied, ours)
		}
	}
	return nil
}

func appliedBy(o metav1.Object, fieldOwner string) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == fieldOwner && e.Operation == metav1.ManagedFieldsOperationApply
	})
}
