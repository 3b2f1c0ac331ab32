// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"context"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
)

var shared = apiserver.NewShared(apiserver.Options{CRDs: []string{crds.IngressControllers, crds.ClusterVersions}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const manager = "sno.solonode.github.io/sample"

// testObject is an object, the applied intent, and single changes by another client.
type testObject struct {
	kind         schema.GroupVersionKind
	spec, intent map[string]any
	// breaking are merge patches after which the patch is not in force; harmless ones do not affect it.
	breaking, harmless map[string]string
}

var testObjects = map[string]testObject{
	"IngressController": {
		kind: schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "IngressController"},
		spec: map[string]any{"domain": "apps.example.org"},
		intent: map[string]any{
			"replicas": int64(1),
			"nodePlacement": map[string]any{
				"nodeSelector": map[string]any{"matchLabels": map[string]any{"node-role.kubernetes.io/master": ""}},
				"tolerations":  []any{map[string]any{"key": "a", "operator": "Exists"}, map[string]any{"key": "b", "operator": "Exists"}},
			},
		},
		breaking: map[string]string{
			"value":              `{"spec":{"replicas":2}}`,
			"value removed":      `{"spec":{"replicas":null}}`,
			"map removed":        `{"spec":{"nodePlacement":null}}`,
			"atomic map grows":   `{"spec":{"nodePlacement":{"nodeSelector":{"matchLabels":{"infra":""}}}}}`,
			"atomic map shrinks": `{"spec":{"nodePlacement":{"nodeSelector":{"matchLabels":{"node-role.kubernetes.io/master":null}}}}}`,
			"list removed":       `{"spec":{"nodePlacement":{"tolerations":null}}}`,
			"list reordered":     `{"spec":{"nodePlacement":{"tolerations":[{"key":"b","operator":"Exists"},{"key":"a","operator":"Exists"}]}}}`,
			"list grows":         `{"spec":{"nodePlacement":{"tolerations":[{"key":"a","operator":"Exists"},{"key":"b","operator":"Exists"},{"key":"c","operator":"Exists"}]}}}`,
			"whole spec":         `{"spec":{"replicas":3,"nodePlacement":null}}`,
		},
		harmless: map[string]string{
			"another field": `{"spec":{"domain":"other.example.org"}}`,
			"label":         `{"metadata":{"labels":{"a":"b"}}}`,
			"nothing":       `{"spec":{"replicas":1}}`,
		},
	},
	"Service": {
		kind: schema.GroupVersionKind{Version: "v1", Kind: "Service"},
		spec: map[string]any{"ports": []any{map[string]any{"name": "other", "port": int64(1), "protocol": "TCP"}}},
		intent: map[string]any{
			"selector": map[string]any{"a": "b"},
			"ports":    []any{map[string]any{"name": "own", "port": int64(80), "protocol": "TCP"}},
		},
		breaking: map[string]string{
			"atomic map":         `{"spec":{"selector":{"c":"d"}}}`,
			"element removed":    `{"spec":{"ports":[{"name":"other","port":1,"protocol":"TCP"}]}}`,
			"element changed":    `{"spec":{"ports":[{"name":"other","port":1,"protocol":"TCP"},{"name":"renamed","port":80,"protocol":"TCP"}]}}`,
			"key of the element": `{"spec":{"ports":[{"name":"other","port":1,"protocol":"TCP"},{"name":"own","port":81,"protocol":"TCP"}]}}`,
		},
		harmless: map[string]string{
			"another element": `{"spec":{"ports":[{"name":"new","port":2,"protocol":"TCP"},{"name":"own","port":80,"protocol":"TCP","targetPort":80}]}}`,
		},
	},
}

// UpToDate must agree with the API server after an apply, and after each change by another client.
func TestUpToDateAgreesWithTheAPIServer(t *testing.T) {
	for name, p := range testObjects {
		for change, text := range p.breaking {
			t.Run(name+"/"+change, func(t *testing.T) { p.try(t, text, false) })
		}
		for change, text := range p.harmless {
			t.Run(name+"/"+change, func(t *testing.T) { p.try(t, text, true) })
		}
	}
}

func (o testObject) try(t *testing.T, change string, want bool) {
	server := shared.Server(t)
	ctx, admin, namespace := t.Context(), server.Admin(t), server.Namespace(t)
	object := func(spec map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(o.kind)
		u.SetNamespace(namespace)
		u.SetName("default")
		if spec != nil {
			u.Object["spec"] = runtime.DeepCopyJSON(spec)
		}
		return u
	}
	upToDate := func() bool {
		live := object(nil)
		apiserver.NoError(t, admin.Get(ctx, client.ObjectKeyFromObject(live), live))
		set, err := ownership.Applied(live, manager, "")
		apiserver.NoError(t, err)
		return ownership.UpToDate(live.Object, object(o.intent).Object, set)
	}
	apiserver.NoError(t, admin.Create(ctx, object(o.spec), client.FieldOwner("stock")))
	if upToDate() {
		t.Error("UpToDate before the patch was applied")
	}
	apiserver.NoError(t, admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(object(o.intent)), client.FieldOwner(manager)))
	if !upToDate() {
		t.Error("not UpToDate after the patch was applied")
	}
	apiserver.NoError(t, admin.Patch(ctx, object(nil), client.RawPatch(types.MergePatchType, []byte(change)), client.FieldOwner("oc")))
	if got := upToDate(); got != want {
		t.Errorf("after %s UpToDate is %t, want %t", change, got, want)
	}
}

// Entries of spec.overrides have their own owners, and Atomic agrees with the API server.
func TestElementsAgreeWithTheAPIServer(t *testing.T) {
	server := shared.Server(t)
	ctx, admin := t.Context(), server.Admin(t)
	version := func(overrides ...string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ClusterVersion"})
		u.SetName("version")
		var list []any
		for _, name := range overrides {
			list = append(list, map[string]any{
				"kind": "Deployment", "group": "apps", "namespace": "openshift-console", "name": name, "unmanaged": true,
			})
		}
		if list != nil {
			u.Object["spec"] = map[string]any{"overrides": list}
		}
		return u
	}
	list := fieldpath.MakePathOrDie("spec", "overrides")
	element := func(name string) fieldpath.Path {
		key := fieldpath.KeyByFields("kind", "Deployment", "group", "apps", "namespace", "openshift-console", "name", name)
		return append(list.Copy(), fieldpath.PathElement{Key: key})
	}
	created := version("other")
	apiserver.NoError(t, unstructured.SetNestedField(created.Object, "5a2b5b6e-1c6d-4a53-8b36-0a1f7b9a2c3d", "spec", "clusterID"))
	apiserver.NoError(t, admin.Create(ctx, created, client.FieldOwner("oc")))
	t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(ctx), version()); err != nil {
			t.Error(err)
		}
	})
	check := func(path fieldpath.Path, want ...string) {
		t.Helper()
		live := version()
		apiserver.NoError(t, admin.Get(ctx, client.ObjectKeyFromObject(live), live))
		got, err := ownership.ManagersAt(live, path)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("managers of %s: %v (-want +got):\n%s", path, err, diff)
		}
		if atomic, err := ownership.Atomic(live, list); err != nil || atomic {
			t.Errorf("the list is atomic: %t, %v", atomic, err)
		}
	}
	check(element("other"), "oc")
	check(element("downloads"))
	apiserver.NoError(t, admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(version("downloads")), client.FieldOwner(manager)))
	check(element("downloads"), manager)
	check(element("other"), "oc")
	check(list, "oc", manager)

	controller := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"domain": "apps.example.org"}}}
	controller.SetGroupVersionKind(testObjects["IngressController"].kind)
	controller.SetNamespace(server.Namespace(t))
	controller.SetName("default")
	apiserver.NoError(t, admin.Create(ctx, controller, client.FieldOwner("stock")))
	patch := `{"spec":{"replicas":1,"unsupportedConfigOverrides":{"a":true},"nodePlacement":{"nodeSelector":{"matchLabels":{"a":"b"}},"tolerations":[{"key":"a"}]}}}`
	apiserver.NoError(t, admin.Patch(ctx, controller, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("oc")))
	for field, want := range map[string]bool{
		".spec.nodePlacement.nodeSelector": true, ".spec.nodePlacement.tolerations": true, ".spec.nodePlacement": false, ".spec.replicas": true,
		// The keys of a field without a schema have their own owners.
		".spec.unsupportedConfigOverrides": false, ".spec.unsupportedConfigOverrides.a": true,
	} {
		path, err := ownership.ParsePath(field)
		apiserver.NoError(t, err)
		if got, err := ownership.Atomic(controller, path); err != nil || got != want {
			t.Errorf("%s is atomic: %t, %v, want %t", field, got, err, want)
		}
	}
}
