// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

type fakeClient struct {
	client.Client
	mapper meta.RESTMapper
	listed []client.ListOptions
}

func (c *fakeClient) RESTMapper() meta.RESTMapper { return c.mapper }

func (c *fakeClient) List(_ context.Context, _ client.ObjectList, opts ...client.ListOption) error {
	c.listed = append(c.listed, *(&client.ListOptions{}).ApplyOptions(opts))
	return nil
}

func serving(kinds ...schema.GroupVersionKind) *fakeClient {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range kinds {
		mapper.Add(kind, meta.RESTScopeRoot)
	}
	return &fakeClient{mapper: mapper}
}

type fakeModule struct {
	Module
	objects []Object
}

func (m *fakeModule) Objects() []Object { return m.objects }

func TestOnceEnvironment(t *testing.T) {
	node, version := corev1.SchemeGroupVersion.WithKind("Node"), configv1.GroupVersion.WithKind("ClusterVersion")
	m := &fakeModule{objects: []Object{
		Infrastructure, {GroupVersionKind: node, Labels: "master"}, {GroupVersionKind: version, Name: "version", Optional: true},
	}}
	_, err := OnceEnvironment(serving(node), Options{}, m)
	if !errors.Is(err, ErrNotServed) || !strings.Contains(err.Error(), "Infrastructure.config.openshift.io/v1") || strings.Contains(err.Error(),
		"ClusterVersion") {
		t.Errorf("without a required kind: %v", err)
	}

	c := serving(node, Infrastructure.GroupVersionKind)
	env, err := OnceEnvironment(c, Options{ForceConflicts: true}, m)
	if err != nil {
		t.Fatal(err)
	}
	if !env.Once || !env.Options.ForceConflicts || env.Metrics == nil {
		t.Errorf("the environment is %+v", env)
	}
	for _, from := range []client.Reader{env.Reader, env.Live} {
		missing := Object{GroupVersionKind: version, Name: "version"}
		if err := from.Get(t.Context(), missing.Key(), missing.Unstructured()); !apierrors.IsNotFound(err) {
			t.Errorf("an object of a kind that is not served: %v", err)
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(node.GroupVersion().WithKind("NodeList"))
		if err := from.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	if s := c.listed[0].LabelSelector; s == nil || s.String() != "master" {
		t.Errorf("Reader lists %v", s)
	}
	if s := c.listed[1].LabelSelector; s != nil {
		t.Errorf("Live lists %v", s)
	}
	if env.Metadata(m.objects[1]) == nil {
		t.Error("metadata cannot be read")
	}
}

func TestIsNotServed(t *testing.T) {
	none := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "config.openshift.io", Kind: "Ingress"}, SearchedVersions: []string{"v1"}}
	discovery := func(errs ...error) error {
		failed := apiutil.ErrResourceDiscoveryFailed{}
		for i, err := range errs {
			failed[schema.GroupVersion{Group: fmt.Sprint(i)}] = err
		}
		return &failed
	}
	refused := errors.New("connection refused")
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"no such kind":                 {none, true},
		"no such group":                {discovery(none), true},
		"a group that does not answer": {discovery(none, refused), false},
		"wrapped":                      {fmt.Errorf("mapping: %w", discovery(none)), true},
		"no answer":                    {refused, false},
	} {
		if got := IsNotServed(test.err); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestSkipUnserved(t *testing.T) {
	o := Object{GroupVersionKind: configv1.GroupVersion.WithKind("ClusterVersion"), Name: "version", Optional: true}
	none := &meta.NoKindMatchError{GroupKind: o.GroupKind(), SearchedVersions: []string{"v1"}}
	for name, test := range map[string]struct {
		absent []schema.GroupVersionKind
		err    error
	}{
		"absent":     {absent: []schema.GroupVersionKind{o.GroupVersionKind}},
		"not served": {err: none},
		"no answer":  {err: errors.New("connection refused")},
	} {
		from := fakeReader{err: errors.Join(test.err, none)}
		live, typed, err := Read[metav1.PartialObjectMetadata](t.Context(), SkipUnserved(from, test.absent), o)
		if live != nil || typed != nil || (err != nil) != (test.err != nil) {
			t.Errorf("%s: %v, %v, %v", name, live, typed, err)
		}
	}
}
