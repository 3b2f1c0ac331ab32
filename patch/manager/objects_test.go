package manager

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

var (
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	configs     = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Ingress"}
)

// The caches hold the objects that were asked for, and where one name is enough nothing beside it.
func TestCacheOptions(t *testing.T) {
	for name, test := range map[string]struct {
		objects []Object
		want    map[string]string // kind and namespace to field selector
	}{
		"one of a namespace":          {[]Object{{GroupVersionKind: deployments, Namespace: "a", Name: "x"}}, map[string]string{"Deployment in a": "metadata.name=x"}},
		"one of the cluster":          {[]Object{{GroupVersionKind: configs, Name: "cluster"}}, map[string]string{"Ingress": "metadata.name=cluster"}},
		"twice the same":              {[]Object{{GroupVersionKind: deployments, Namespace: "a", Name: "x"}, {GroupVersionKind: deployments, Namespace: "a", Name: "x"}}, map[string]string{"Deployment in a": "metadata.name=x"}},
		"two of a namespace":          {[]Object{{GroupVersionKind: deployments, Namespace: "a", Name: "x"}, {GroupVersionKind: deployments, Namespace: "a", Name: "y"}}, map[string]string{"Deployment in a": ""}},
		"by label":                    {[]Object{{GroupVersionKind: configs, Labels: "a=b"}}, map[string]string{"Ingress": "a=b"}},
		"a namespace full":            {[]Object{{GroupVersionKind: deployments, Namespace: "a", Name: ""}}, map[string]string{"Deployment in a": ""}},
		"one, and the namespace full": {[]Object{{GroupVersionKind: deployments, Namespace: "a", Name: "x"}, {GroupVersionKind: deployments, Namespace: "a", Name: ""}}, map[string]string{"Deployment in a": ""}},
		"two namespaces": {[]Object{{GroupVersionKind: deployments, Namespace: "a", Name: "x"}, {GroupVersionKind: deployments, Namespace: "b", Name: "y"}, {GroupVersionKind: configs, Name: "cluster"}},
			map[string]string{"Deployment in a": "metadata.name=x", "Deployment in b": "metadata.name=y", "Ingress": "metadata.name=cluster"}},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := cacheOptions(test.objects)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for object, by := range options.ByObject {
				kind := object.GetObjectKind().GroupVersionKind().Kind
				if by.Field != nil {
					got[kind] = by.Field.String()
				}
				if by.Label != nil {
					got[kind] = by.Label.String()
				}
				for namespace, config := range by.Namespaces {
					got[kind+" in "+namespace] = ""
					if config.FieldSelector != nil {
						got[kind+" in "+namespace] = config.FieldSelector.String()
					}
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("caches (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObjectsAreReadOnce(t *testing.T) {
	p := &process{modules: []Module{&sample{}, &sample{}}}
	want := []Object{Infrastructure, watched, optional}
	if diff := cmp.Diff(want, p.objects()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Object{labelled}, p.asides()); diff != "" {
		t.Errorf("objects of which only metadata is held (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]schema.GroupVersionKind{Infrastructure.GroupVersionKind, watched.GroupVersionKind}, kinds(p.objects(), false)); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]schema.GroupVersionKind{optional.GroupVersionKind}, kinds(p.objects(), true)); diff != "" {
		t.Errorf("optional kinds (-want +got):\n%s", diff)
	}
}

// answers is a RESTMapper of an API server that serves some kinds.
type answers struct {
	meta.RESTMapper
	served map[schema.GroupKind]*meta.RESTMapping
	err    error
}

func (a answers) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	if mapping := a.served[kind]; mapping != nil {
		return mapping, nil
	}
	return nil, a.err
}

// Once the manager is made, what the API server says comes first; until it says something, the kinds that are asked for are known all the
// same.
func TestKnownKinds(t *testing.T) {
	real := &meta.RESTMapping{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "really"}, GroupVersionKind: deployments, Scope: meta.RESTScopeNamespace}
	away := errors.New("connection refused")
	made := &atomic.Bool{}
	known := &knownKinds{
		made:       made,
		RESTMapper: answers{served: map[schema.GroupKind]*meta.RESTMapping{deployments.GroupKind(): real}, err: away},
		scopes:     map[schema.GroupVersionKind]meta.RESTScope{deployments: meta.RESTScopeNamespace, configs: meta.RESTScopeRoot},
	}
	if got, err := known.RESTMapping(deployments.GroupKind(), "v1"); err != nil || got == real {
		t.Errorf("a kind that is served, while the manager is made: %v, %v; want what is known", got, err)
	}
	made.Store(true)
	if got, err := known.RESTMapping(deployments.GroupKind(), "v1"); err != nil || got != real {
		t.Errorf("a kind that is served: %v, %v", got, err)
	}
	want := &meta.RESTMapping{Resource: schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "ingresses"}, GroupVersionKind: configs, Scope: meta.RESTScopeRoot}
	if got, err := known.RESTMapping(configs.GroupKind(), "v1"); err != nil || *got != *want {
		t.Errorf("a kind that is not served yet: %v, %v; want %v", got, err, want)
	}
	for _, other := range []schema.GroupVersionKind{
		{Group: "config.openshift.io", Version: "v2", Kind: "Ingress"}, {Group: "config.openshift.io", Version: "v1", Kind: "DNS"},
	} {
		if got, err := known.RESTMapping(other.GroupKind(), other.Version); !errors.Is(err, away) {
			t.Errorf("%s, which nobody asked for: %v, %v; want the API server's answer", other, got, err)
		}
	}
}

func TestIsNotServed(t *testing.T) {
	none := &meta.NoKindMatchError{GroupKind: configs.GroupKind(), SearchedVersions: []string{"v1"}}
	discovery := func(errs ...error) error {
		failed := apiutil.ErrResourceDiscoveryFailed{}
		for i, err := range errs {
			failed[schema.GroupVersion{Group: fmt.Sprint(i)}] = err
		}
		return &failed
	}
	away := errors.New("connection refused")
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"no such kind":         {none, true},
		"no such group":        {discovery(none), true},
		"a group that is away": {discovery(none, away), false},
		"wrapped":              {fmt.Errorf("mapping: %w", discovery(none)), true},
		"no answer":            {away, false},
	} {
		if got := isNotServed(test.err); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// mapper answers with one error, or knows every kind.
type mapper struct {
	meta.RESTMapper
	err error
}

func (m mapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return &meta.RESTMapping{}, m.err
}

func TestAppeared(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"served":     {nil, true},
		"not served": {&meta.NoKindMatchError{GroupKind: configs.GroupKind()}, false},
		"no answer":  {errors.New("connection refused"), false},
	} {
		p := &process{served: mapper{err: test.err}}
		if got := p.appeared([]schema.GroupVersionKind{configs}); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
