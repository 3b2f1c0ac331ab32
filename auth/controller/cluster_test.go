package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/manager"
	"github.com/solonode/sno/patch/patchtest"
)

var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{
	patchtest.Infrastructures, patchtest.ClusterVersions, patchtest.Authentications,
}})

func TestMain(m *testing.M) {
	patchtest.BeProgram(func(args []string) int { return manager.Main("auth-controller", args, &Module{}) })
	os.Exit(shared.Main(m))
}

const (
	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	external = configv1.ExternalTopologyMode

	// needs and needsNot are releases that need the override and that do not.
	needs, needsNot = "4.7.13", "4.20.1"

	// key is written out, so that a renamed constant is noticed.
	key = "useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer"

	// ourUser is who the controller is, to the API server.
	ourUser = "auth-under-test"

	systemNamespace = "sno-system"
)

// cluster is one without operators: the test plays them.
type cluster struct {
	*testing.T
	server *patchtest.APIServer
	admin  client.WithWatch
}

func newCluster(t *testing.T, server *patchtest.APIServer) *cluster {
	t.Helper()
	c := &cluster{T: t, server: server, admin: server.Admin(t)}
	for _, name := range []string{auth.OAuthServerNamespace, auth.OAuthAPIServerNamespace, systemNamespace} {
		err := c.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	t.Cleanup(c.clear)
	return c
}

// install is a cluster of the topology and release, with an Authentication as the installation makes it, the two Deployments
// as somebody makes them who leaves their shape alone, and the nodes.
func install(t *testing.T, mode configv1.TopologyMode, release string, nodes int) *cluster {
	t.Helper()
	c := newCluster(t, shared.Server(t))
	c.installInfrastructure(mode)
	c.installRelease(release)
	c.installAuthentication(`{"managementState":"Managed"}`)
	c.installDeployments()
	c.installNodes(nodes)
	return c
}

// clear removes what there is only one of, so that the next test starts afresh.
func (c *cluster) clear() {
	ctx := context.WithoutCancel(c.Context())
	for _, u := range []*unstructured.Unstructured{
		object("config.openshift.io/v1", "Infrastructure", "", ""),
		object("config.openshift.io/v1", "ClusterVersion", "", ""),
		object("operator.openshift.io/v1", "Authentication", "", ""),
		object("apps/v1", "Deployment", auth.OAuthServerNamespace, ""),
		object("apps/v1", "Deployment", auth.OAuthAPIServerNamespace, ""),
		object("v1", "Node", "", ""),
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

func (c *cluster) create(u client.Object, fieldManager string) {
	c.Helper()
	if err := c.admin.Create(c.Context(), u, client.FieldOwner(fieldManager)); err != nil {
		c.Fatalf("%s making %s: %v", fieldManager, u.GetName(), err)
	}
}

// patch writes as `oc patch --type=merge` would, as the field manager.
func (c *cluster) patch(u *unstructured.Unstructured, fieldManager, text string, subresource ...string) {
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

// apply writes as `kubectl apply --server-side --force-conflicts` would.
func (c *cluster) apply(u *unstructured.Unstructured, fieldManager string) {
	c.Helper()
	err := c.admin.Apply(c.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		c.Fatalf("%s applying %s: %v", fieldManager, u.GetName(), err)
	}
}

func (c *cluster) eventually(what string, check func() error) {
	c.Helper()
	patchtest.Eventually(c, what, check)
}

func (c *cluster) installInfrastructure(mode configv1.TopologyMode) {
	c.Helper()
	c.create(&configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}, "installer")
	c.flip(mode)
}

// flip changes the topology at run time.
func (c *cluster) flip(mode configv1.TopologyMode) {
	c.Helper()
	infrastructure := mode
	if mode == external {
		infrastructure = ha
	}
	c.patch(object("config.openshift.io/v1", "Infrastructure", "", "cluster"), "installer", fmt.Sprintf(
		`{"status":{"controlPlaneTopology":%q,"infrastructureTopology":%q,"cpuPartitioning":"None","platformStatus":{"type":"None"}}}`,
		mode, infrastructure), "status")
}

func (c *cluster) installRelease(release string) {
	c.Helper()
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	cv.Spec.ClusterID = "00000000-0000-4000-8000-000000000000"
	c.create(cv, "installer")
	c.upgrade(release)
}

// upgrade completes an update to the release.
func (c *cluster) upgrade(release string) {
	c.Helper()
	cv := &configv1.ClusterVersion{}
	if err := c.admin.Get(c.Context(), client.ObjectKey{Name: "version"}, cv); err != nil {
		c.Fatal(err)
	}
	now := metav1.Now()
	cv.Status.VersionHash, cv.Status.Desired = "x", configv1.Release{Version: release, Image: "x"}
	cv.Status.History = []configv1.UpdateHistory{{
		State: configv1.CompletedUpdate, Version: release, Image: "x", StartedTime: now, CompletionTime: &now,
	}}
	if err := c.admin.Status().Update(c.Context(), cv, client.FieldOwner("cluster-version-operator")); err != nil {
		c.Fatal(err)
	}
}

func authenticationOf(spec string) *unstructured.Unstructured {
	u := object("operator.openshift.io/v1", "Authentication", "", "cluster")
	if spec != "" {
		var decoded map[string]any
		if err := json.Unmarshal([]byte(spec), &decoded); err != nil {
			panic(err)
		}
		u.Object["spec"] = decoded
	}
	return u
}

func (c *cluster) installAuthentication(spec string) {
	c.Helper()
	c.create(authenticationOf(spec), "cluster-version-operator")
}

// edit writes the Authentication as somebody would with `oc patch`.
func (c *cluster) edit(fieldManager, spec string) {
	c.Helper()
	c.patch(authenticationOf(""), fieldManager, `{"spec":`+spec+`}`)
}

func (c *cluster) authentication() *operatorv1.Authentication {
	c.Helper()
	a := &operatorv1.Authentication{}
	if err := c.admin.Get(c.Context(), client.ObjectKey{Name: "cluster"}, a); err != nil {
		c.Fatal(err)
	}
	return a
}

// overrides is the field as the API server shows it; "absent" where it is not there.
func (c *cluster) overrides() string {
	c.Helper()
	u := authenticationOf("")
	if err := c.admin.Get(c.Context(), client.ObjectKey{Name: "cluster"}, u); err != nil {
		c.Fatal(err)
	}
	value, found, err := unstructured.NestedFieldNoCopy(u.Object, "spec", "unsupportedConfigOverrides")
	if err != nil {
		c.Fatal(err)
	}
	if !found {
		return "absent"
	}
	text, err := json.Marshal(value)
	if err != nil {
		c.Fatal(err)
	}
	return string(text)
}

// wantOverrides fails unless the field is as given.
func (c *cluster) wantOverrides(want string) {
	c.Helper()
	if got := c.overrides(); got != want {
		c.Errorf("unsupportedConfigOverrides are %s, want %s", got, want)
	}
}

// The two Deployments, by the names of their namespaces and of themselves.
var (
	serverKey    = client.ObjectKey{Namespace: auth.OAuthServerNamespace, Name: auth.OAuthServerName}
	apiServerKey = client.ObjectKey{Namespace: auth.OAuthAPIServerNamespace, Name: auth.OAuthAPIServerName}
)

// deploymentOf is a Deployment without any field of the shape.
func deploymentOf(k client.ObjectKey) *unstructured.Unstructured {
	u := object("apps/v1", "Deployment", k.Namespace, k.Name)
	labels := map[string]any{"app": k.Name}
	u.Object["spec"] = map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "server", "image": "example.com/server:1"}}},
		},
	}
	return u
}

// installDeployments has them applied, so that the API server's defaults are nobody's.
func (c *cluster) installDeployments() {
	c.Helper()
	c.apply(deploymentOf(serverKey), "gitops")
	c.apply(deploymentOf(apiServerKey), "gitops")
}

func (c *cluster) deployment(k client.ObjectKey) *appsv1.Deployment {
	c.Helper()
	d := &appsv1.Deployment{}
	if err := c.admin.Get(c.Context(), k, d); err != nil {
		c.Fatal(err)
	}
	return d
}

// rollOut plays the controllers: every pod that a Deployment asks for is there and available.
func (c *cluster) rollOut() {
	c.Helper()
	for _, k := range []client.ObjectKey{serverKey, apiServerKey} {
		d := &appsv1.Deployment{}
		if err := c.admin.Get(c.Context(), k, d); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			c.Fatal(err)
		}
		n := *d.Spec.Replicas
		c.patch(object("apps/v1", "Deployment", k.Namespace, k.Name), "kube-controller-manager", fmt.Sprintf(
			`{"status":{"observedGeneration":%d,"replicas":%d,"updatedReplicas":%d,"readyReplicas":%d,"availableReplicas":%d}}`,
			d.Generation, n, n, n, n), "status")
	}
}

// installNodes makes control-plane nodes up to the number, and a worker that no count may see.
func (c *cluster) installNodes(n int) {
	c.Helper()
	for i := range n + 1 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("master-%d", i), Labels: map[string]string{"node-role.kubernetes.io/master": "", "node-role.kubernetes.io/control-plane": ""}}}
		if i == n {
			node.Name, node.Labels = "worker", map[string]string{"node-role.kubernetes.io/worker": ""}
		}
		if err := c.admin.Create(c.Context(), node); err != nil && !apierrors.IsAlreadyExists(err) {
			c.Fatal(err)
		}
	}
}

// onlyControlPlane is what the cache does: of the nodes it holds those with the label.
type onlyControlPlane struct{ client.Reader }

func (r onlyControlPlane) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.Reader.List(ctx, list, append(opts, client.HasLabels{nodeObjects.Labels})...)
}

// looker is a controller that looks when it is told to, without a cache, so that every look sees what was written before it.
type looker struct {
	*cluster
	patcher *patcher
}

// looker makes a new controller, as after a restart.
func (c *cluster) looker(change ...func(*patcher)) *looker {
	c.Helper()
	return c.lookerBy(c.ours(), change...)
}

// ourClients has one for each API server, because a client certificate takes long to make.
var ourClients = map[*patchtest.APIServer]client.WithWatch{}

// ours is the controller's client.
func (c *cluster) ours() client.WithWatch {
	c.Helper()
	if ourClients[c.server] == nil {
		ourClients[c.server] = c.server.Client(c, ourUser, "system:masters")
	}
	return ourClients[c.server]
}

func (c *cluster) lookerBy(by client.Client, change ...func(*patcher)) *looker {
	p := &patcher{
		reader: onlyControlPlane{by}, override: auth.OverrideAuto,
		authentication: &apply.Applier{Client: by, Module: auth.Name},
		deployments:    &apply.Applier{Client: by, Module: auth.Name},
	}
	for _, f := range change {
		f(p)
	}
	return &looker{c, p}
}

func forced(p *patcher) { p.forceConflicts, p.deployments.ForceConflicts = true, true }

func policy(policy auth.OverridePolicy) func(*patcher) {
	return func(p *patcher) { p.override = policy }
}

// look looks once.
func (l *looker) look() patch.Result {
	l.Helper()
	_, result, err := l.patcher.look(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	return result
}

// settle plays the controllers and looks, until a look writes nothing, and returns what that look says.
func (l *looker) settle() patch.Result {
	l.Helper()
	for range 8 {
		var result patch.Result
		l.rollOut()
		if writes := l.server.WritesDuring(l, ourUser, func() { result = l.look() }); len(writes) == 0 {
			return result
		}
	}
	l.Fatal("it does not come to rest")
	return patch.Result{}
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
