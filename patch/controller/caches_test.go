// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// named is a cache that records its name when it is read.
type named struct {
	cache.Cache
	name, has string
	read      *string
}

func (n named) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	if n.has != key.Name {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	*n.read = n.name
	return nil
}

func (n named) List(context.Context, client.ObjectList, ...client.ListOption) error {
	*n.read = n.name
	return nil
}

type recording struct {
	ctrl.Manager
	added []manager.Runnable
}

func (r *recording) Add(runnable manager.Runnable) error {
	r.added = append(r.added, runnable)
	return nil
}

// Objects of several modules share a cache. Creating the caches sends no request.
func TestNewCaches(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	created, err := ctrl.NewManager(&rest.Config{Host: server.URL}, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	mgr := &recording{Manager: created}
	deployment := Object{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Namespace: "a", Name: "x"}
	caches, err := NewCaches(mgr, []Object{Infrastructure, deployment, Infrastructure, deployment})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Object{Infrastructure, deployment} {
		if caches[o] == nil || !slices.Contains(mgr.added, manager.Runnable(managed{caches[o]})) {
			t.Errorf("the manager does not have the cache of %s", o.Kind)
		}
	}
	if len(mgr.added) != 2 {
		t.Errorf("the manager has %d caches of 2 objects", len(mgr.added))
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("creating the caches sends %d requests", n)
	}
}

func TestCacheOptions(t *testing.T) {
	node, deployment := corev1.SchemeGroupVersion.WithKind("Node"), appsv1.SchemeGroupVersion.WithKind("Deployment")
	for name, test := range map[string]struct {
		object                   Object
		namespace, field, labels string
		strips                   bool
	}{
		"one of a namespace": {object: Object{GroupVersionKind: deployment, Namespace: "a", Name: "x"}, namespace: "a", field: "metadata.name=x"},
		"one of the cluster": {object: Object{GroupVersionKind: node, Name: "x"}, field: "metadata.name=x"},
		"by label":           {object: Object{GroupVersionKind: node, Labels: "a=b", MetadataOnly: true}, labels: "a=b", strips: true},
		"all of a namespace": {object: Object{GroupVersionKind: deployment, Namespace: "a"}, namespace: "a"},
	} {
		got, err := test.object.cacheOptions()
		if err != nil {
			t.Fatal(err)
		}
		field, labels := "", ""
		if got.DefaultFieldSelector != nil {
			field = got.DefaultFieldSelector.String()
		}
		if got.DefaultLabelSelector != nil {
			labels = got.DefaultLabelSelector.String()
		}
		_, within := got.DefaultNamespaces[test.namespace]
		if field != test.field || labels != test.labels || within != (test.namespace != "") || (got.DefaultTransform != nil) != test.strips {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, err := (Object{GroupVersionKind: node, Labels: "a in"}).cacheOptions(); !errors.Is(err, ErrObject) {
		t.Errorf("an invalid selector: %v", err)
	}
}

// Each object is read from its own cache; an object that no module lists is an error.
func TestCaches(t *testing.T) {
	node, deployment := corev1.SchemeGroupVersion.WithKind("Node"), appsv1.SchemeGroupVersion.WithKind("Deployment")
	configMap := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	read := ""
	caches := Caches{
		{GroupVersionKind: configMap, Optional: true}:                    nil,
		{GroupVersionKind: deployment, Namespace: "a", Name: "x"}:        named{name: "x", has: "x", read: &read},
		{GroupVersionKind: deployment, Namespace: "a", Name: "y"}:        named{name: "y", has: "y", read: &read},
		{GroupVersionKind: deployment, Namespace: "b"}:                   named{name: "all of b", has: "x", read: &read},
		{GroupVersionKind: node, MetadataOnly: true, Labels: "a"}:        named{name: "metadata", has: "x", read: &read},
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret")}: named{name: "secrets", has: "x", read: &read},
	}
	for _, test := range []struct {
		object Object
		list   bool
		want   string
		err    func(error) bool
	}{
		{object: Object{GroupVersionKind: deployment, Namespace: "a", Name: "x"}, want: "x"},
		{object: Object{GroupVersionKind: deployment, Namespace: "a", Name: "y"}, want: "y"},
		{object: Object{GroupVersionKind: deployment, Namespace: "b", Name: "x"}, want: "all of b"},
		{object: Object{GroupVersionKind: deployment, Namespace: "b", Name: "z"}, err: apierrors.IsNotFound},
		{object: Object{GroupVersionKind: deployment, Namespace: "a", Name: "z"}, err: isUnlisted},
		{object: Object{GroupVersionKind: node, Name: "x"}, err: isUnlisted},
		{object: Object{GroupVersionKind: deployment, Namespace: "b"}, list: true, want: "all of b"},
		{object: Object{GroupVersionKind: deployment, Namespace: "a"}, list: true, err: isUnlisted},
		{object: Object{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"), Namespace: "c"}, list: true, want: "secrets"},
		{object: Object{GroupVersionKind: configMap, Namespace: "a", Name: "x"}, err: apierrors.IsNotFound},
		{object: Object{GroupVersionKind: configMap, Namespace: "a"}, list: true},
	} {
		read = ""
		err := func() error {
			if !test.list {
				return caches.Get(t.Context(), test.object.Key(), test.object.Unstructured())
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(test.object.GroupVersion().WithKind(test.object.Kind + "List"))
			return caches.List(t.Context(), list, client.InNamespace(test.object.Namespace))
		}()
		if read != test.want || (err != nil) != (test.err != nil) || err != nil && !test.err(err) {
			t.Errorf("%+v: read from %q, %v, want %q", test.object, read, err, test.want)
		}
	}
}

func isUnlisted(err error) bool { return errors.Is(err, ErrObject) }
