// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
)

var shared = apiserver.NewShared(apiserver.Options{CRDs: []string{crds.IngressControllers}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const (
	module = "sample"
	stock  = "cluster-ingress-operator" // its creation-time replicas may be taken
	person = "oc"                       // may not be overridden
)

var (
	owner             = patch.FieldOwner(module)
	annotation        = patch.ReplacedAnnotation(module)
	ingressController = schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "IngressController"}
	deployment        = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

// objectFixture is one object, by default an IngressController, in its own namespace.
type objectFixture struct {
	*testing.T
	kind      schema.GroupVersionKind
	server    *apiserver.Server
	admin     client.WithWatch
	namespace string
}

func newFixture(t *testing.T, manager string, spec map[string]any) *objectFixture {
	t.Helper()
	return newFixtureOf(t, ingressController, manager, spec)
}

func newFixtureOf(t *testing.T, kind schema.GroupVersionKind, manager string, spec map[string]any) *objectFixture {
	t.Helper()
	server := shared.Server(t)
	o := &objectFixture{T: t, kind: kind, server: server, admin: server.Admin(t), namespace: server.Namespace(t)}
	o.create(manager, spec)
	return o
}

func (o *objectFixture) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

func (o *objectFixture) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.kind)
	u.SetNamespace(o.namespace)
	u.SetName("default")
	return u
}

func (o *objectFixture) create(manager string, spec map[string]any) {
	o.Helper()
	u := o.object()
	u.Object["spec"] = spec
	o.must(o.admin.Create(o.Context(), u, client.FieldOwner(manager)))
}

func (o *objectFixture) live() *unstructured.Unstructured {
	o.Helper()
	u := o.object()
	o.must(o.admin.Get(o.Context(), client.ObjectKeyFromObject(u), u))
	return u
}

func (o *objectFixture) merge(manager, patchJSON string) {
	o.Helper()
	o.must(o.admin.Patch(o.Context(), o.object(), client.RawPatch(types.MergePatchType, []byte(patchJSON)), client.FieldOwner(manager)))
}

func (o *objectFixture) intent(spec map[string]any) runtime.ApplyConfiguration {
	u := o.object()
	u.Object["spec"] = runtime.DeepCopyJSON(spec)
	return client.ApplyConfigurationFromUnstructured(u)
}

// applier returns an applier with its own user, whose requests are counted.
func (o *objectFixture) applier(change ...func(*apply.Applier)) *apply.Applier {
	o.Helper()
	a := &apply.Applier{
		Client: o.server.Client(o, o.namespace, "system:masters"), Module: module,
		Overridable: []apply.Overridable{{Field: ".spec.replicas", Manager: stock}},
	}
	for _, f := range change {
		f(a)
	}
	return a
}

func dryRun(a *apply.Applier) { a.DryRun = true }
func forced(a *apply.Applier) { a.ForceConflicts = true }

func (o *objectFixture) apply(a *apply.Applier, spec map[string]any, want apply.Kind, requests int, unset ...string) apply.Outcome {
	o.Helper()
	return o.applyTo(a, o.live(), spec, want, requests, unset...)
}

func (o *objectFixture) applyTo(
	a *apply.Applier, live *unstructured.Unstructured, spec map[string]any, want apply.Kind, requests int, unset ...string,
) apply.Outcome {
	o.Helper()
	return o.counted(requests, want, func(ctx context.Context) (apply.Outcome, error) { return a.Apply(ctx, live, o.intent(spec), unset...) })
}

func (o *objectFixture) release(a *apply.Applier, options apply.ReleaseOptions, want apply.Kind, requests int) {
	o.Helper()
	live := o.live()
	o.counted(requests, want, func(ctx context.Context) (apply.Outcome, error) { return a.Release(ctx, live, options) })
}

func (o *objectFixture) counted(requests int, want apply.Kind, do func(context.Context) (apply.Outcome, error)) apply.Outcome {
	o.Helper()
	var outcome apply.Outcome
	var err error
	writes := o.server.WritesDuring(o, o.namespace, func() { outcome, err = do(o.Context()) })
	if err != nil || outcome.Kind != want {
		o.Fatalf("outcome is %+v, %v; want %s", outcome, err, want)
	}
	if len(writes) != requests {
		o.Errorf("%s sent %d write requests, want %d: %v", want, len(writes), requests, writes)
	}
	return outcome
}

// intercept calls the function before each request. Its error replaces the response.
func (o *objectFixture) intercept(a *apply.Applier, before func(verb string) error) *apply.Applier {
	o.Helper()
	a.Client = interceptor.NewClient(o.server.Client(o, o.namespace, "system:masters"), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if err := before("apply"); err != nil {
				return err
			}
			return c.Apply(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := before("patch"); err != nil {
				return err
			}
			return c.Patch(ctx, obj, p, opts...)
		},
	})
	return a
}

var errCrash = errors.New("the process is killed")

// crash returns an applier whose requests with the verb are not sent.
func (o *objectFixture) crash(verb string, change ...func(*apply.Applier)) *apply.Applier {
	o.Helper()
	return o.intercept(o.applier(change...), func(sent string) error {
		if sent == verb {
			return errCrash
		}
		return nil
	})
}

func (o *objectFixture) fails(what string, err error, want ...error) {
	o.Helper()
	for _, w := range want {
		if errors.Is(err, w) {
			return
		}
	}
	o.Errorf("%s: %v, want %v", what, err, want)
}

func (o *objectFixture) same(what string, want, got any) {
	o.Helper()
	byField := cmpopts.SortSlices(func(x, y apply.Conflict) bool { return x.Field < y.Field }) // the API server has no order
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), byField); diff != "" {
		o.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// spec compares a part of the spec, nil if it is absent. An empty map is not absent.
func (o *objectFixture) spec(want any, path ...string) {
	o.Helper()
	got, _, err := unstructured.NestedFieldNoCopy(o.live().Object, append([]string{"spec"}, path...)...)
	o.must(err)
	if diff := cmp.Diff(want, got); diff != "" {
		o.Errorf("spec%v (-want +got):\n%s", path, diff)
	}
}

func (o *objectFixture) managers(field string, want ...string) {
	o.Helper()
	got, err := ownership.Managers(o.live(), field)
	o.must(err)
	o.same("managers of "+field, want, got)
}

func (o *objectFixture) owned(want ...string) {
	o.Helper()
	o.same("owned by the module", want, ownedBy(o.T, o.live(), owner))
}

func ownedBy(t *testing.T, object *unstructured.Unstructured, manager string) []string {
	t.Helper()
	set, err := ownership.Applied(object, manager, "")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	set.Iterate(func(p fieldpath.Path) { paths = append(paths, p.String()) })
	return paths
}

func (o *objectFixture) replaced(want ...patch.Replaced) {
	o.Helper()
	got, err := patch.ReadReplaced(o.live(), module)
	o.must(err)
	o.same("replaced values", want, got)
}

// unchanged fails if the object is written while the function runs.
func (o *objectFixture) unchanged(do func()) {
	o.Helper()
	before := o.live().GetResourceVersion()
	do()
	if after := o.live().GetResourceVersion(); after != before {
		o.Errorf("the object was written: resourceVersion %s, then %s", before, after)
	}
}

func replicas(n int64) map[string]any { return map[string]any{"replicas": n} }

// pinned is a patch with a scalar, an atomic map and an atomic list.
func pinned(n int64) map[string]any {
	return map[string]any{
		"replicas": n,
		"nodePlacement": map[string]any{
			"nodeSelector": map[string]any{"matchLabels": map[string]any{"node-role.kubernetes.io/master": ""}},
			"tolerations": []any{
				map[string]any{"key": "node-role.kubernetes.io/master", "operator": string(corev1.TolerationOpExists), "effect": "NoSchedule"},
			},
		},
	}
}

func stockReplicas(value string) patch.Replaced {
	return patch.Replaced{Field: ".spec.replicas", Manager: stock, Value: []byte(value)}
}
