package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/manager"
	"github.com/solonode/sno/patch/patchtest"
	"github.com/solonode/sno/patch/status"
)

var shared = patchtest.NewShared(patchtest.Options{
	CRDs: []string{patchtest.Infrastructures, patchtest.ClusterVersions, patchtest.ClusterOperators},
})

func TestMain(m *testing.M) {
	patchtest.BeProgram(func(args []string) int { return manager.Main("approver-controller", args, NewModule()) })
	os.Exit(shared.Main(m))
}

const (
	sr = configv1.SingleReplicaTopologyMode
	ha = configv1.HighlyAvailableTopologyMode

	// Written out, so that a renamed constant is noticed.
	namespace, stockName, configName = "openshift-cluster-machine-approver", "machine-approver", "machine-approver-config"
	fieldOwner                       = "sno.solonode.github.io/approver"
	editAnnotation                   = "sno.solonode.github.io/approver-edit"

	// ourUser is who the controller is, to the API server, and cvo the cluster-version-operator, also as field manager.
	ourUser, cvo    = "approver-under-test", "cluster-version-operator"
	systemNamespace = "sno-system"
)

// cluster is one without controllers: the test plays them.
type cluster struct {
	*testing.T
	server *patchtest.APIServer
	admin  client.WithWatch
}

// install is a cluster with one control-plane node and a stock approver as the release brings it.
func install(t *testing.T) *cluster {
	t.Helper()
	server := shared.Server(t)
	c := &cluster{T: t, server: server, admin: server.Admin(t)}
	for _, name := range []string{namespace, systemNamespace} {
		c.must(client.IgnoreAlreadyExists(c.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	}
	t.Cleanup(c.clear)
	c.create(&configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}, "installer")
	c.flip(sr)
	v := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	v.Spec.ClusterID = "00000000-0000-4000-8000-000000000000"
	v.Spec.Overrides = []configv1.ComponentOverride{{Kind: "Deployment", Group: "apps", Namespace: "openshift-dns-operator", Name: "dns-operator", Unmanaged: true}}
	c.create(v, "installer")
	c.observe()
	c.create(&configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "machine-approver"}}, cvo)
	c.create(stock(), cvo)
	c.rollOut()
	return c
}

// stock is the Deployment as far as it matters.
func stock() *appsv1.Deployment {
	labels := map[string]string{"app": "machine-approver"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: stockName},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels}, Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"openshift.io/required-scc": "hostnetwork-v2"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "machine-approver-controller", Image: "machine-approver"}}},
			},
		},
	}
}

// clear removes what there is only one of, so that the next test starts afresh.
func (c *cluster) clear() {
	ctx := context.WithoutCancel(c.Context())
	for _, u := range []*unstructured.Unstructured{
		object("config.openshift.io/v1", "Infrastructure", ""),
		object("config.openshift.io/v1", "ClusterVersion", ""),
		object("config.openshift.io/v1", "ClusterOperator", ""),
		object("apps/v1", "Deployment", namespace),
		object("v1", "ConfigMap", namespace),
		object("v1", "Node", ""),
		object("certificates.k8s.io/v1", "CertificateSigningRequest", ""),
		object("coordination.k8s.io/v1", "Lease", systemNamespace),
		object("events.k8s.io/v1", "Event", "default"),
	} {
		err := c.admin.DeleteAllOf(ctx, u, client.InNamespace(u.GetNamespace()), client.GracePeriodSeconds(0))
		if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			c.Errorf("cleaning up %s: %v", u.GetKind(), err)
		}
	}
}

func object(apiVersion, kind, namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
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
func (c *cluster) edit(o manager.Object, fieldManager, text string, subresource ...string) {
	c.Helper()
	raw, err := client.RawPatch(types.MergePatchType, []byte(text)), error(nil)
	if len(subresource) > 0 {
		err = c.admin.Status().Patch(c.Context(), o.Unstructured(), raw, client.FieldOwner(fieldManager))
	} else {
		u := o.Unstructured()
		u.SetName(o.Name)
		u.SetNamespace(o.Namespace)
		err = c.admin.Patch(c.Context(), u, raw, client.FieldOwner(fieldManager))
	}
	if err != nil {
		c.Fatalf("%s writing %s: %v", fieldManager, text, err)
	}
}

// flip changes the topology at run time.
func (c *cluster) flip(mode configv1.TopologyMode) {
	c.Helper()
	c.edit(manager.Infrastructure, "installer", fmt.Sprintf(
		`{"status":{"controlPlaneTopology":%q,"infrastructureTopology":%[1]q,"cpuPartitioning":"None","platformStatus":{"type":"None"}}}`, mode), "status")
}

// get reads an object, nil when there is none.
func get[T any](c *cluster, o manager.Object) *T {
	c.Helper()
	_, typed, err := manager.Read[T](c.Context(), c.admin, o)
	c.must(err)
	return typed
}

func (c *cluster) deployment() *appsv1.Deployment { return get[appsv1.Deployment](c, deploymentObject) }
func (c *cluster) config() *corev1.ConfigMap      { return get[corev1.ConfigMap](c, configObject) }
func (c *cluster) version() *configv1.ClusterVersion {
	return get[configv1.ClusterVersion](c, versionObject)
}
func (c *cluster) operator() *configv1.ClusterOperator {
	return get[configv1.ClusterOperator](c, operatorObject)
}

// observe is the cluster-version-operator seeing the ClusterVersion.
func (c *cluster) observe() {
	c.Helper()
	v := c.version()
	if v == nil || (v.Status.ObservedGeneration == v.Generation && len(v.Status.History) > 0) {
		return
	}
	v.Status = configv1.ClusterVersionStatus{ObservedGeneration: v.Generation, VersionHash: "hash",
		Desired: configv1.Release{Version: "4.21.3", Image: "release"}, AvailableUpdates: []configv1.Release{}}
	v.Status.History = []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.21.3", Image: "release",
		StartedTime: v.CreationTimestamp, CompletionTime: &v.CreationTimestamp}}
	c.wrote(c.admin.Status().Update(c.Context(), v, client.FieldOwner(cvo)))
}

// rollOut plays the Deployment controller.
func (c *cluster) rollOut() {
	c.Helper()
	d := c.deployment()
	if d == nil || d.Status.ObservedGeneration == d.Generation {
		return
	}
	c.edit(deploymentObject, "kube-controller-manager", fmt.Sprintf(
		`{"status":{"observedGeneration":%d,"replicas":%d,"updatedReplicas":%[2]d,"readyReplicas":%[2]d,"availableReplicas":%[2]d}}`,
		d.Generation, *d.Spec.Replicas), "status")
}

// reconcile plays the cluster-version-operator on the Deployment: unless it has seen that the Deployment is unmanaged, it brings back what
// the manifest says, and leaves annotations of the pods that the manifest does not speak of.
func (c *cluster) reconcile() {
	c.Helper()
	v, d := c.version(), c.deployment()
	if d == nil || (v.Status.ObservedGeneration == v.Generation && slices.ContainsFunc(v.Spec.Overrides, func(o configv1.ComponentOverride) bool { return o.Name == stockName && o.Unmanaged })) {
		return
	}
	if *d.Spec.Replicas != 1 {
		d.Spec.Replicas = ptr.To[int32](1)
		c.wrote(c.admin.Update(c.Context(), d, client.FieldOwner(cvo)))
	}
}

// wrote fails for the write of an operator that this test plays, unless the controller was faster: as any operator does, it looks again, and it is played
// until there is nothing to do.
func (c *cluster) wrote(err error) {
	c.Helper()
	if !apierrors.IsConflict(err) {
		c.must(err)
	}
}

// looker is a controller that looks when it is told to.
type looker struct {
	*cluster
	patcher *patcher
	fuse    *patchtest.Fuse
	clock   *time.Time
}

var ours struct {
	client.WithWatch
	*patchtest.Fuse
}

// looker makes a new controller, as after a restart.
func (c *cluster) looker(mode approver.Mode, change ...func(*patcher)) *looker {
	c.Helper()
	if ours.WithWatch == nil { // a client certificate takes long to make
		config := c.server.Config(c, ourUser, "system:masters")
		ours.Fuse = &patchtest.Fuse{}
		config.Wrap(ours.Wrap)
		var err error
		ours.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: c.server.Scheme()})
		c.must(err)
	}
	ours.Reset()
	applier := func(overridable ...apply.Overridable) *apply.Applier {
		return &apply.Applier{Client: ours.WithWatch, Module: approver.Name, Overridable: overridable}
	}
	clock := time.Now()
	now := func() time.Time { return clock }
	shown := &kept{}
	p := &patcher{
		live: ours.WithWatch, mapper: ours.RESTMapper(), mode: mode, every: time.Minute,
		now: now, unserved: map[schema.GroupKind]time.Time{},
		writer: writer{client: ours.WithWatch, deployment: applier(apply.Overridable{Field: ".spec.replicas", Manager: cvo}), version: applier()},
		aging: &aging{live: ours.WithWatch, limits: approver.DefaultAgeLimits, now: now, wake: make(chan struct{}, 1), beginRequests: make(chan struct{}, 1), beginKubelets: make(chan struct{}, 1), kubeletsEvery: time.Hour,
			reporter: &status.Reporter{Module: approver.Name, Prefix: agingPrefix, Object: "certificates", Sink: shown, Clock: fixed{now}}},
	}
	for _, f := range change {
		f(p)
	}
	return &looker{c, p, ours.Fuse, &clock}
}

// fixed is a clock that stands where the test puts it.
type fixed struct{ now func() time.Time }

func (f fixed) Now() time.Time                  { return f.now() }
func (f fixed) Since(t time.Time) time.Duration { return f.now().Sub(t) }

// try looks once.
func (l *looker) try() (patch.Result, error) {
	_, result, err := l.patcher.look(logr.NewContext(l.Context(), logr.Discard()))
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

// settle has everybody act in turn until the controller writes nothing, and returns what it says then.
func (l *looker) settle() patch.Result {
	l.Helper()
	for range 12 {
		l.reconcile()
		l.observe()
		l.rollOut()
		var result patch.Result
		if writes := l.server.WritesDuring(l, ourUser, func() { result = l.look() }); len(writes) == 0 {
			if d := l.deployment(); d == nil || d.Status.ObservedGeneration == d.Generation {
				return result
			}
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

// text is the configuration of the stock approver, and whether there is one.
func (c *cluster) text() (string, bool) {
	c.Helper()
	if config := c.config(); config != nil {
		text, ok := config.Data["config.yaml"]
		return text, ok
	}
	return "", false
}

// configure writes it as a person.
func (c *cluster) configure(text string) {
	c.Helper()
	c.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: configName}, Data: map[string]string{"config.yaml": text}}, "kubectl-create")
}

// untouched checks that nothing of ours is anywhere.
func (c *cluster) untouched() error {
	d, v, config := c.deployment(), c.version(), c.config()
	objects := []metav1.Object{d, v}
	if config != nil {
		objects = append(objects, config)
	}
	for _, o := range objects {
		for _, entry := range o.GetManagedFields() {
			if entry.Manager == fieldOwner && entry.Subresource == "" {
				return fmt.Errorf("%T is still ours: %s", o, entry.FieldsV1)
			}
		}
		for key := range o.GetAnnotations() {
			if strings.Contains(key, "solonode") && key != patch.OptOutAnnotation {
				return fmt.Errorf("%T still has the annotation %s", o, key)
			}
		}
	}
	if *d.Spec.Replicas != 1 || d.Spec.Template.Annotations[editAnnotation] != "" || len(v.Spec.Overrides) != 1 {
		return fmt.Errorf("%d replicas, annotations %v, overrides %v", *d.Spec.Replicas, d.Spec.Template.Annotations, v.Spec.Overrides)
	}
	return nil
}

var errNot = errors.New("it is not so")

// request makes a certificate signing request for the signer.
func (c *cluster) request(signer string) string {
	c.Helper()
	r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"}}
	r.Spec.SignerName, r.Spec.Request, r.Spec.Usages = signer, anyRequest(c), []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}
	c.must(c.admin.Create(c.Context(), r))
	return r.Name
}

// serve has the API server serve Machines of the group.
func (c *cluster) serve(group string) {
	c.Helper()
	crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "")
	crd.SetName("machines." + group)
	if strings.HasSuffix(group, ".x-k8s.io") {
		crd.SetAnnotations(map[string]string{"api-approved.kubernetes.io": "unapproved, for a test"})
	}
	crd.Object["spec"] = map[string]any{
		"group": group, "scope": "Namespaced", "names": map[string]any{"plural": "machines", "singular": "machine", "kind": "Machine", "listKind": "MachineList"},
		"versions": []any{map[string]any{"name": "v1beta1", "served": true, "storage": true, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
	}
	c.must(client.IgnoreAlreadyExists(c.admin.Create(c.Context(), crd)))
	patchtest.Eventually(c, "Machines are served", func() error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(group + "/v1beta1")
		list.SetKind("MachineList")
		return c.admin.List(c.Context(), list)
	})
}
