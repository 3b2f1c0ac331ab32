package apply_test

import (
	"context"
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
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/patch/patchtest"
)

// The tests of this package are about what the API server decides, so all but the smallest run against a real one.
var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{patchtest.IngressControllers}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const (
	module = "sample"
	// stock is the manager whose creation-time replicas may be taken over.
	stock = "cluster-ingress-operator"
	// person is a manager that may not be overridden.
	person = "oc"
)

var (
	owner             = patch.FieldOwner(module)
	annotation        = patch.ReplacedAnnotation(module)
	ingressController = schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "IngressController"}
	deployment        = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

// bench is one object, mostly an IngressController, in a namespace of its own, and everybody who writes it.
type bench struct {
	*testing.T
	kind      schema.GroupVersionKind
	server    *patchtest.APIServer
	admin     client.WithWatch
	namespace string
}

// newBench makes an IngressController with the given spec, written by manager with an update.
func newBench(t *testing.T, manager string, spec map[string]any) *bench {
	t.Helper()
	return newBenchOf(t, ingressController, manager, spec)
}

func newBenchOf(t *testing.T, kind schema.GroupVersionKind, manager string, spec map[string]any) *bench {
	t.Helper()
	server := shared.Server(t)
	b := &bench{T: t, kind: kind, server: server, admin: server.Admin(t), namespace: server.Namespace(t)}
	b.create(manager, spec)
	return b
}

func (b *bench) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(b.kind)
	u.SetNamespace(b.namespace)
	u.SetName("default")
	return u
}

func (b *bench) create(manager string, spec map[string]any) {
	b.Helper()
	u := b.object()
	u.Object["spec"] = spec
	if err := b.admin.Create(b.Context(), u, client.FieldOwner(manager)); err != nil {
		b.Fatal(err)
	}
}

// live reads the object.
func (b *bench) live() *unstructured.Unstructured {
	b.Helper()
	u := b.object()
	if err := b.admin.Get(b.Context(), client.ObjectKeyFromObject(u), u); err != nil {
		b.Fatal(err)
	}
	return u
}

// merge writes as somebody else would with `oc patch --type=merge`.
func (b *bench) merge(manager, patchJSON string) {
	b.Helper()
	merge(b.T, b.admin, b.object(), manager, patchJSON)
}

func merge(t *testing.T, c client.Client, object client.Object, manager, patchJSON string) {
	t.Helper()
	err := c.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patchJSON)), client.FieldOwner(manager))
	if err != nil {
		t.Fatalf("%s writing %s: %v", manager, patchJSON, err)
	}
}

// intent is a freshly built apply configuration.
func (b *bench) intent(spec map[string]any) runtime.ApplyConfiguration {
	u := b.object()
	u.Object["spec"] = runtime.DeepCopyJSON(spec)
	return client.ApplyConfigurationFromUnstructured(u)
}

// applier writes as a user of its own, so that its requests can be counted.
func (b *bench) applier(change ...func(*apply.Applier)) *apply.Applier {
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

// apply must succeed with the given kind, sending the given number of requests.
func (b *bench) apply(a *apply.Applier, spec map[string]any, want apply.Kind, requests int) apply.Outcome {
	b.Helper()
	return b.applyTo(a, b.live(), spec, want, requests)
}

func (b *bench) applyTo(a *apply.Applier, live *unstructured.Unstructured, spec map[string]any, want apply.Kind, requests int) apply.Outcome {
	b.Helper()
	return b.applyWithout(a, live, spec, nil, want, requests)
}

// applyWithout also makes fields absent.
func (b *bench) applyWithout(a *apply.Applier, live *unstructured.Unstructured, spec map[string]any, unset []string, want apply.Kind, requests int) apply.Outcome {
	b.Helper()
	return b.counted(requests, want, func(ctx context.Context) (apply.Outcome, error) {
		return a.Apply(ctx, live, b.intent(spec), unset...)
	})
}

func (b *bench) release(a *apply.Applier, options apply.ReleaseOptions, want apply.Kind, requests int) {
	b.Helper()
	live := b.live()
	b.counted(requests, want, func(ctx context.Context) (apply.Outcome, error) { return a.Release(ctx, live, options) })
}

func (b *bench) counted(requests int, want apply.Kind, do func(context.Context) (apply.Outcome, error)) apply.Outcome {
	b.Helper()
	var outcome apply.Outcome
	var err error
	writes := b.server.WritesDuring(b, b.namespace, func() { outcome, err = do(b.Context()) })
	if err != nil {
		b.Fatalf("want %s, got the error %v", want, err)
	}
	if outcome.Kind != want {
		b.Fatalf("outcome is %s, want %s: %+v", outcome.Kind, want, outcome)
	}
	if len(writes) != requests {
		b.Errorf("%s sent %d write requests, want %d: %v", want, len(writes), requests, writes)
	}
	return outcome
}

// spec compares a part of the object's spec, nil for one that is not there.
func (b *bench) spec(want any, path ...string) {
	b.Helper()
	got, _, err := unstructured.NestedFieldNoCopy(b.live().Object, append([]string{"spec"}, path...)...)
	if err != nil {
		b.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("spec%v (-want +got):\n%s", path, diff)
	}
}

func (b *bench) managers(field string, want ...string) {
	b.Helper()
	got, err := ownership.Managers(b.live(), field)
	if err != nil {
		b.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		b.Errorf("managers of %s (-want +got):\n%s", field, diff)
	}
}

// owned compares everything that the module's owner owns by server-side apply.
func (b *bench) owned(want ...string) {
	b.Helper()
	if diff := cmp.Diff(want, ownedBy(b.T, b.live(), owner)); diff != "" {
		b.Errorf("owned by %s (-want +got):\n%s", owner, diff)
	}
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

func (b *bench) remembered(want ...patch.Replaced) {
	b.Helper()
	got, err := patch.ReadReplaced(b.live().GetAnnotations(), module)
	if err != nil {
		b.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("remembered values (-want +got):\n%s", diff)
	}
}

// unchanged fails when the object was written while the function ran.
func (b *bench) unchanged(do func()) {
	b.Helper()
	before := b.live().GetResourceVersion()
	do()
	if after := b.live().GetResourceVersion(); after != before {
		b.Errorf("the object was written: resourceVersion %s, then %s", before, after)
	}
}

func replicas(n int64) map[string]any { return map[string]any{"replicas": n} }

// pinned is what a real patch looks like: a value, an atomic map and an atomic list.
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
