// SPDX-License-Identifier: Apache-2.0

package etcdguard_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	standalone "github.com/solonode/sno/etcdguard/controller"
	"github.com/solonode/sno/etcdguard/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
	"github.com/solonode/sno/testcluster/modules"
)

// options store objects as JSON, so that tests can read etcd's history.
var options = apiserver.Options{
	CRDs:  []string{crds.Infrastructures, crds.ClusterVersions, "etcds.operator.openshift.io"},
	Flags: map[string]string{"storage-media-type": "application/json"},
}

var suite = modules.Suite{
	Module:  func() controller.Module { return &standalone.Module{} },
	Options: options,
}

var (
	versionObject    = modules.Object("config.openshift.io/v1", "ClusterVersion", "", "version")
	etcdObject       = modules.Object("operator.openshift.io/v1", "Etcd", "", etcdguard.OperatorName)
	deploymentObject = modules.Object("apps/v1", "Deployment", namespace, guardName)
	budgetObject     = modules.Object("policy/v1", "PodDisruptionBudget", namespace, guardName)
	podsBudgetObject = modules.Object("policy/v1", "PodDisruptionBudget", namespace, etcdguard.PodsBudgetName)
	secretObject     = modules.Object("v1", "Secret", namespace, etcdguard.ClientSecret)
	bundleObject     = modules.Object("v1", "ConfigMap", namespace, etcdguard.CABundle)
)

func TestMain(m *testing.M) { os.Exit(suite.Test(m)) }

const (
	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	arbiter  = configv1.HighlyAvailableArbiterMode
	dual     = configv1.DualReplicaTopologyMode
	external = configv1.ExternalTopologyMode

	// Literals, so that tests fail if a constant changes.
	namespace, guardName   = "openshift-etcd", "etcd-quorum-guard"
	fieldOwner, cvo        = "sno.solonode.github.io/etcdguard", "cluster-version-operator"
	masterRole, workerRole = "node-role.kubernetes.io/master", "node-role.kubernetes.io/worker"
	arbiterRole            = "node-role.kubernetes.io/arbiter"
)

var otherEntry = configv1.ComponentOverride{
	Kind: "Deployment", Group: "apps", Namespace: "openshift-dns-operator", Name: "dns-operator", Unmanaged: true,
}

// expectedMembers and maxEvictions (of n guards) are the rules, independent of the code.
func expectedMembers(mode configv1.TopologyMode) int {
	return map[configv1.TopologyMode]int{sr: 1, dual: 2, ha: 3, arbiter: 3}[mode]
}

func maxEvictions(mode configv1.TopologyMode, n int) int {
	if mode == dual && n == 2 {
		return 1
	}
	return (n - 1) / 2
}

// cluster has fakes of etcd and of the cluster-version-operator.
type cluster struct {
	*modules.Cluster
	etcd  *fakeEtcd
	cvo   modules.VersionOperator
	nodes int
}

func newCluster(c *modules.Cluster) *cluster {
	c.Helper()
	c.AllowTopologies(arbiter, dual)
	release := apiserver.Manifests(c, "testdata/module/decision/testdata", "guard.yaml")
	return &cluster{Cluster: c, etcd: serveEtcd(c.T), cvo: c.VersionOperator(release[0], release[1])}
}

// install returns a healthy cluster of a release with a static guard.
func install(t *testing.T, mode configv1.TopologyMode, n int) *cluster {
	t.Helper()
	c := newCluster(suite.Cluster(t))
	c.install(mode, n)
	return c
}

func (c *cluster) install(mode configv1.TopologyMode, n int) {
	c.Helper()
	etcd := etcdObject.Unstructured()
	etcd.Object["spec"] = map[string]any{"managementState": "Managed"}
	c.Create("installer", etcd, newVersion())
	c.installCertificates()
	c.change(mode, n)
	c.cvo.RunOnce()
}

func newVersion() *configv1.ClusterVersion {
	v := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: versionObject.Name}}
	v.Spec.ClusterID = "00000000-0000-4000-8000-000000000000"
	v.Spec.Overrides = []configv1.ComponentOverride{otherEntry}
	return v
}

func (c *cluster) installCertificates() {
	c.Helper()
	c.Apply("installer", secretObject.Unstructured(), bundleObject.Unstructured())
}

func (c *cluster) deployment() *appsv1.Deployment {
	return modules.Get[appsv1.Deployment](c.Cluster, deploymentObject)
}

func (c *cluster) budget() *policyv1.PodDisruptionBudget {
	return modules.Get[policyv1.PodDisruptionBudget](c.Cluster, budgetObject)
}

func (c *cluster) version() *configv1.ClusterVersion {
	return modules.Get[configv1.ClusterVersion](c.Cluster, versionObject)
}

// change sets the topology and n control-plane nodes with healthy members.
func (c *cluster) change(mode configv1.TopologyMode, n int) {
	c.Helper()
	c.etcd.set(n, n)
	c.setNodes(mode, n)
	c.setTopology(mode)
}

func (c *cluster) setTopology(mode configv1.TopologyMode) {
	c.Helper()
	infrastructure := ha
	if mode == sr {
		infrastructure = sr
	}
	c.SetTopology(mode, infrastructure)
}

// setNodes sets n control-plane nodes, of which the first may be an arbiter, and a worker.
func (c *cluster) setNodes(mode configv1.TopologyMode, n int) {
	c.Helper()
	c.Apply("kubelet", node("worker", workerRole))
	for i := range n {
		role := masterRole
		if i == 0 && mode == arbiter {
			role = arbiterRole
		}
		c.Apply("kubelet", node(nodeObject(i).Name, role))
	}
	for i := n; i < c.nodes; i++ {
		c.Delete(nodeObject(i))
	}
	c.nodes = n
}

func nodeObject(i int) controller.Object {
	return modules.Object("v1", "Node", "", fmt.Sprintf("node-%d", i))
}

func node(name, role string) *unstructured.Unstructured {
	u := modules.Object("v1", "Node", "", name).Unstructured()
	u.SetLabels(map[string]string{role: ""})
	return u
}

type reconciler struct {
	*modules.Reconciler
	c *cluster
}

// reconciler returns a new controller, with fakes of the Deployment controller and the cluster-version-operator.
func (c *cluster) reconciler(flags ...string) reconciler {
	c.Helper()
	l := c.Reconciler(append([]string{"--image=cli", "--etcd-endpoints=" + c.etcd.endpoint}, flags...)...)
	l.OtherClients = []func(){func() { c.cvo.RunOnce() }, func() { c.CompleteRollouts(deploymentObject) }}
	return reconciler{l, c}
}

var writtenAction = regexp.MustCompile(`"msg"="Written" "action"="(\w+)"`)

func (r reconciler) actions() string {
	var actions []string
	for _, line := range r.Logged {
		if written := writtenAction.FindStringSubmatch(line); written != nil {
			actions = append(actions, written[1])
		}
	}
	r.Logged = nil
	return strings.Join(actions, " ")
}

func (r reconciler) wantActions(want string) {
	r.Helper()
	if did := r.actions(); did != want {
		r.Errorf("actions %q, want %q", did, want)
	}
}

// wantSettled reconciles until nothing changes, and checks the reason and the guard.
func (r reconciler) wantSettled(reason string, replicas, maxUnavailable int, ours bool) patch.Result {
	r.Helper()
	result := r.Settle()
	if result.Reason != reason {
		r.Errorf("%v, want %s", result, reason)
	}
	r.c.wantGuard(replicas, maxUnavailable, ours)
	return result
}

// beforeFirst calls do before the first request of that method.
func (r reconciler) beforeFirst(method string, do func()) {
	var once sync.Once
	r.CrashInjector.BeforeRequest(func(request *http.Request) {
		if request.Method == method {
			once.Do(do)
		}
	})
}

func (r reconciler) stepUntil(action decision.Action) {
	r.Helper()
	for range 20 {
		_, err := r.Step()
		r.NoError(err)
		if strings.HasSuffix(r.actions(), string(action)) {
			return
		}
	}
	r.Fatalf("%s was not carried out", action)
}

func (c *cluster) start() *modules.Program {
	c.Helper()
	return c.Start("--image=cli", "--etcd-endpoints="+c.etcd.endpoint)
}

// wantGuard checks the live guard; 0 replicas means none.
func (c *cluster) wantGuard(replicas, maxUnavailable int, ours bool) {
	c.Helper()
	c.NoError(c.checkGuard(replicas, maxUnavailable, ours))
}

func (c *cluster) checkGuard(replicas, maxUnavailable int, ours bool) error {
	d, b := modules.Find[appsv1.Deployment](c.Cluster, deploymentObject), modules.Find[policyv1.PodDisruptionBudget](c.Cluster, budgetObject)
	switch {
	case replicas == 0 && d == nil && b == nil:
		return nil
	case replicas == 0, d == nil, b == nil:
		return fmt.Errorf("Deployment exists %t, budget exists %t; want %d replicas", d != nil, b != nil, replicas)
	}
	if got := int(*d.Spec.Replicas); got != replicas || b.Spec.MinAvailable != nil || b.Spec.MaxUnavailable.IntValue() != maxUnavailable {
		return fmt.Errorf("%d replicas, minAvailable %v, maxUnavailable %v; want %d and %d",
			got, b.Spec.MinAvailable, b.Spec.MaxUnavailable, replicas, maxUnavailable)
	}
	objects := []client.Object{d, b}
	if v := modules.Find[configv1.ClusterVersion](c.Cluster, versionObject); v != nil {
		objects = append(objects, v)
	}
	for _, o := range objects {
		if owns := ownership.Owns(o, fieldOwner); owns != ours {
			return fmt.Errorf("%T is owned by the module: %t, want %t", o, owns, ours)
		}
	}
	return nil
}

// fakeEtcd serves the members that a test sets. TestRealMembers uses a real etcd.
type fakeEtcd struct {
	*etcdserverpb.UnimplementedClusterServer
	*etcdserverpb.UnimplementedKVServer
	endpoint, unhealthy string // unhealthy implements no service

	mu         sync.Mutex
	list       []*etcdserverpb.Member // nil when it cannot be read
	calls      int
	duringList func() // called while the list is read
}

func serveEtcd(t testing.TB) *fakeEtcd {
	t.Helper()
	serve := func(server *grpc.Server) (endpoint string) {
		listener := must(net.Listen("tcp", "127.0.0.1:0"))
		go func() { _ = server.Serve(listener) }() // Stop ends it
		t.Cleanup(server.Stop)
		return "http://" + listener.Addr().String()
	}
	e := &fakeEtcd{unhealthy: serve(grpc.NewServer())}
	server := grpc.NewServer()
	etcdserverpb.RegisterClusterServer(server, e)
	etcdserverpb.RegisterKVServer(server, e)
	e.endpoint = serve(server)
	return e
}

// set sets n members. The list cannot be read if healthy is negative.
func (e *fakeEtcd) set(n, healthy int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.list = nil; healthy < 0 {
		return
	}
	e.list = []*etcdserverpb.Member{}
	for i := range n {
		url := e.unhealthy
		if i < healthy {
			url = e.endpoint
		}
		e.list = append(e.list, &etcdserverpb.Member{ID: uint64(i + 1), ClientURLs: []string{url}})
	}
}

func (e *fakeEtcd) MemberList(_ context.Context, r *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	e.mu.Lock()
	e.calls++
	list, meanwhile := slices.Clone(e.list), e.duringList
	e.mu.Unlock()
	if meanwhile != nil {
		meanwhile()
	}
	if list == nil || !r.Linearizable {
		return nil, status.Error(codes.FailedPrecondition, "no quorum, or not a linearizable read")
	}
	return &etcdserverpb.MemberListResponse{Header: &etcdserverpb.ResponseHeader{}, Members: list}, nil
}

func (e *fakeEtcd) Range(_ context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	if r.Serializable {
		return nil, status.Error(codes.FailedPrecondition, "not a linearizable read")
	}
	return &etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{}}, nil
}
