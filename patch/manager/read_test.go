package manager

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestBeside(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	// Each waits for the other, which ends only when they run at the same time.
	one, other := make(chan struct{}), make(chan struct{})
	meets := func(tell, wait chan struct{}) func(context.Context) error {
		return func(ctx context.Context) error {
			close(tell)
			select {
			case <-wait:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	if err := Beside(ctx, meets(one, other), meets(other, one)); err != nil {
		t.Errorf("reads do not run at the same time: %v", err)
	}
	first, second := errors.New("first"), errors.New("second") //nolint:err113 // told apart by what they are
	failed := make(chan struct{})
	late := func(context.Context) error { <-failed; return first }
	early := func(context.Context) error { close(failed); return second }
	if err := Beside(ctx, func(context.Context) error { return nil }, late, early); !errors.Is(err, first) {
		t.Errorf("error is %v, want that of the first in order, whichever was sooner", err)
	}
	if err := Beside(ctx); err != nil {
		t.Errorf("nothing to read is an error: %v", err)
	}
}

// versions is a reader of one object, as it is at the moment.
type versions struct {
	client.Reader
	now *unstructured.Unstructured
}

func (v versions) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	v.now.DeepCopyInto(object.(*unstructured.Unstructured)) //nolint:forcetypeassert // Read gives nothing else
	return nil
}

func TestReadDecodesAVersionOnce(t *testing.T) {
	o := Object{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "a", Name: "b"}
	now := &unstructured.Unstructured{}
	is := func(uid, resourceVersion, value string) {
		now.Object = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"is": value}}
		now.SetUID(types.UID(uid))
		now.SetResourceVersion(resourceVersion)
	}
	from := reader{versions{now: now}, nil, &decoded{}}
	var last *corev1.ConfigMap
	for _, test := range []struct {
		name, uid, resourceVersion, value string
		same                              bool
	}{
		{"at first", "a", "1", "one", false},
		{"as it was", "a", "1", "one", true},
		{"changed", "a", "2", "two", false},
		{"back at what it was", "a", "1", "one", false},
		{"made anew at the same version", "b", "1", "three", false},
		{"of no version", "b", "", "four", false},
		{"of no version again", "b", "", "five", false},
	} {
		is(test.uid, test.resourceVersion, test.value)
		live, typed, err := Read[corev1.ConfigMap](t.Context(), from, o)
		if err != nil {
			t.Fatal(err)
		}
		if typed.Data["is"] != test.value || live.GetResourceVersion() != test.resourceVersion {
			t.Errorf("%s: %q at version %q", test.name, typed.Data["is"], live.GetResourceVersion())
		}
		if same := typed == last; same != test.same {
			t.Errorf("%s: the one that was decoded before: %t, want %t", test.name, same, test.same)
		}
		last = typed
	}
	if secret, err := readAs[corev1.Secret](t.Context(), from, o); err != nil || secret == nil {
		t.Errorf("%v, %v; the same object as another type was not decoded", secret, err)
	}
}

func readAs[T any](ctx context.Context, from client.Reader, o Object) (*T, error) {
	_, typed, err := Read[T](ctx, from, o)
	return typed, err
}
