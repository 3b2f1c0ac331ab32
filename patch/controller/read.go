package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Read returns one object as it was read and decoded; nil and nil when it does not exist.
func Read[T any](ctx context.Context, from client.Reader, o Object) (*unstructured.Unstructured, *T, error) {
	live := o.Unstructured()
	if err := from.Get(ctx, o.Key(), live); apierrors.IsNotFound(err) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, fmt.Errorf("reading %s %s: %w", o.Kind, o.Key(), err)
	}
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, typed); err != nil {
		return nil, nil, fmt.Errorf("decoding %s %s: %w", o.Kind, o.Key(), err)
	}
	return live, typed, nil
}

// ReadInto returns a function that reads one object as Read does, for a golang.org/x/sync/errgroup.Group in which several are read at once.
// It sets live and typed, of which live may be nil.
func ReadInto[T any](ctx context.Context, from client.Reader, o Object, live **unstructured.Unstructured, typed **T) func() error {
	return func() error {
		object, decoded, err := Read[T](ctx, from, o)
		if *typed = decoded; live != nil {
			*live = object
		}
		return err
	}
}

// Unserved returns the kinds of the objects that are not served: the needed ones by name, and the optional ones. An API server that does
// not answer is an error.
func Unserved(mapper meta.RESTMapper, objects []Object) (missing []string, absent []schema.GroupVersionKind, err error) {
	needed := map[schema.GroupVersionKind]bool{}
	for _, o := range objects {
		needed[o.GroupVersionKind] = needed[o.GroupVersionKind] || !o.Optional
	}
	for gvk, need := range needed {
		switch _, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version); {
		case err == nil:
		case !IsNotServed(err):
			return nil, nil, fmt.Errorf("discovering %s: %w", gvk.Kind, err)
		case need:
			missing = append(missing, gvk.Kind+"."+gvk.GroupVersion().String())
		default:
			absent = append(absent, gvk)
		}
	}
	slices.Sort(missing)
	return missing, absent, nil
}

// IsNotServed reports whether the error of a RESTMapper means that the API server answers and does not serve the kind.
func IsNotServed(err error) bool {
	var failed *apiutil.ErrResourceDiscoveryFailed
	if !errors.As(err, &failed) {
		return meta.IsNoMatchError(err)
	}
	for _, cause := range *failed {
		if !meta.IsNoMatchError(cause) && !apierrors.IsNotFound(cause) {
			return false
		}
	}
	return true
}
