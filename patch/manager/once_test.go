package manager

import (
	"context"
	"errors"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mapped is a client of a cluster that serves some kinds and is asked for lists only.
type mapped struct {
	client.Client
	mapper meta.RESTMapper
	listed []client.ListOptions
}

func (m *mapped) RESTMapper() meta.RESTMapper { return m.mapper }

func (m *mapped) List(_ context.Context, _ client.ObjectList, opts ...client.ListOption) error {
	m.listed = append(m.listed, *(&client.ListOptions{}).ApplyOptions(opts))
	return nil
}

func serving(kinds ...schema.GroupVersionKind) *mapped {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range kinds {
		mapper.Add(kind, meta.RESTScopeRoot)
	}
	return &mapped{mapper: mapper}
}

// reading is a module that reads these objects.
type reading struct {
	sample
	objects []Object
}

func (r *reading) Objects() []Object { return r.objects }

func TestOnce(t *testing.T) {
	node, version := corev1.SchemeGroupVersion.WithKind("Node"), configv1.GroupVersion.WithKind("ClusterVersion")
	m := &reading{objects: []Object{
		Infrastructure, {GroupVersionKind: node, Labels: "master"}, {GroupVersionKind: version, Name: "version", Optional: true},
	}}
	_, err := Once(serving(node), Options{}, m)
	if !errors.Is(err, ErrNotServed) || !strings.Contains(err.Error(), "Infrastructure.config.openshift.io/v1") || strings.Contains(err.Error(), "ClusterVersion") {
		t.Errorf("without a kind that is needed: %v", err)
	}

	c := serving(node, Infrastructure.GroupVersionKind)
	env, err := Once(c, Options{ForceConflicts: true}, m)
	if err != nil {
		t.Fatal(err)
	}
	if !env.Once || !env.Options.ForceConflicts || len(env.Absent) != 1 || env.Absent[0] != version || env.Metrics == nil {
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
		t.Errorf("the reader that stands for a cache lists %v", s)
	}
	if s := c.listed[1].LabelSelector; s != nil {
		t.Errorf("the other one lists %v", s)
	}
	if env.Metadata(m.objects[1]) == nil {
		t.Error("metadata cannot be read")
	}
}
