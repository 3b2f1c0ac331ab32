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
	"github.com/solonode/sno/patch/patchtest"
)

var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{patchtest.IngressControllers}})

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

// environment is one object, by default an IngressController, in its own namespace.
type environment struct {
	*testing.T
	kind      schema.GroupVersionKind
	server    *patchtest.APIServer
	admin     client.WithWatch
	namespace string
}

func newEnvironment(t *testing.T, manager string, spec map[string]any) *environment {
	t.Helper()
	return newEnvironmentOf(t, ingressController, manager, spec)
}

func newEnvironmentOf(t *testing.T, kind schema.GroupVersionKind, manager string, spec map[string]any) *environment {
	t.Helper()
	server := shared.Server(t)
	b := &environment{T: t, kind: kind, server: server, admin: server.Admin(t), namespace: server.Namespace(t)}
	b.create(manager, spec)
	return b
}

func (b *environment) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *environment) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(b.kind)
	u.SetNamespace(b.namespace)
	u.SetName("default")
	return u
}

func (b *environment) create(manager string, spec map[string]any) {
	b.Helper()
	u := b.object()
	u.Object["spec"] = spec
	b.must(b.admin.Create(b.Context(), u, client.FieldOwner(manager)))
}

func (b *environment) live() *unstructured.Unstructured {
	b.Helper()
	u := b.object()
	b.must(b.admin.Get(b.Context(), client.ObjectKeyFromObject(u), u))
	return u
}

func (b *environment) merge(manager, patchJSON string) {
	b.Helper()
	b.must(b.admin.Patch(b.Context(), b.object(), client.RawPatch(types.MergePatchType, []byte(patchJSON)), client.FieldOwner(manager)))
}

func (b *environment) intent(spec map[string]any) runtime.ApplyConfiguration {
	u := b.object()
	u.Object["spec"] = runtime.DeepCopyJSON(spec)
	return client.ApplyConfigurationFromUnstructured(u)
}

// applier returns an applier with its own user, whose requests are counted.
func (b *environment) applier(change ...func(*apply.Applier)) *apply.Applier {
	b.Helper()
	a := &apply.Applier{
		Client: b.server.Client(b, b.namespace, "system:masters"), Module: module,
		Overridable: []apply.Overridable{{Field: ".spec.replicas", Manager: stock}},
	}
	for _, f := range change {
		f(a)
	}
	return a
}

func dryRun(a *apply.Applier) { a.DryRun = true }
func forced(a *apply.Applier) { a.ForceConflicts = true }

func (b *environment) apply(a *apply.Applier, spec map[string]any, want apply.Kind, requests int, unset ...string) apply.Outcome {
	b.Helper()
	return b.applyTo(a, b.live(), spec, want, requests, unset...)
}

func (b *environment) applyTo(
	a *apply.Applier, live *unstructured.Unstructured, spec map[string]any, want apply.Kind, requests int, unset ...string,
) apply.Outcome {
	b.Helper()
	return b.counted(requests, want, func(ctx context.Context) (apply.Outcome, error) { return a.Apply(ctx, live, b.intent(spec), unset...) })
}

func (b *environment) release(a *apply.Applier, options apply.ReleaseOptions, want apply.Kind, requests int) {
	b.Helper()
	live := b.live()
	b.counted(requests, want, func(ctx context.Context) (apply.Outcome, error) { return a.Release(ctx, live, options) })
}

func (b *environment) counted(requests int, want apply.Kind, do func(context.Context) (apply.Outcome, error)) apply.Outcome {
	b.Helper()
	var outcome apply.Outcome
	var err error
	writes := b.server.WritesDuring(b, b.namespace, func() { outcome, err = do(b.Context()) })
	if err != nil || outcome.Kind != want {
		b.Fatalf("outcome is %+v, %v; want %s", outcome, err, want)
	}
	if len(writes) != requests {
		b.Errorf("%s sent %d write requests, want %d: %v", want, len(writes), requests, writes)
	}
	return outcome
}

// intercept calls the function before each request. Its error replaces the response.
func (b *environment) intercept(a *apply.Applier, before func(verb string) error) *apply.Applier {
	b.Helper()
	a.Client = interceptor.NewClient(b.server.Client(b, b.namespace, "system:masters"), interceptor.Funcs{
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
func (b *environment) crash(verb string, change ...func(*apply.Applier)) *apply.Applier {
	b.Helper()
	return b.intercept(b.applier(change...), func(sent string) error {
		if sent == verb {
			return errCrash
		}
		return nil
	})
}

func (b *environment) fails(what string, err error, want ...error) {
	b.Helper()
	for _, w := range want {
		if errors.Is(err, w) {
			return
		}
	}
	b.Errorf("%s: %v, want %v", what, err, want)
}

func (b *environment) same(what string, want, got any) {
	b.Helper()
	byField := cmpopts.SortSlices(func(x, y apply.Conflict) bool { return x.Field < y.Field }) // the API server has no order
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), byField); diff != "" {
		b.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// spec compares a part of the spec, nil if it is absent. An empty map is not absent.
func (b *environment) spec(want any, path ...string) {
	b.Helper()
	got, _, err := unstructured.NestedFieldNoCopy(b.live().Object, append([]string{"spec"}, path...)...)
	b.must(err)
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("spec%v (-want +got):\n%s", path, diff)
	}
}

func (b *environment) managers(field string, want ...string) {
	b.Helper()
	got, err := ownership.Managers(b.live(), field)
	b.must(err)
	b.same("managers of "+field, want, got)
}

func (b *environment) owned(want ...string) {
	b.Helper()
	b.same("owned by the module", want, ownedBy(b.T, b.live(), owner))
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

func (b *environment) replaced(want ...patch.Replaced) {
	b.Helper()
	got, err := patch.ReadReplaced(b.live().GetAnnotations(), module)
	b.must(err)
	b.same("replaced values", want, got)
}

// unchanged fails if the object is written while the function runs.
func (b *environment) unchanged(do func()) {
	b.Helper()
	before := b.live().GetResourceVersion()
	do()
	if after := b.live().GetResourceVersion(); after != before {
		b.Errorf("the object was written: resourceVersion %s, then %s", before, after)
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
