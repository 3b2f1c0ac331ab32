// SPDX-License-Identifier: Apache-2.0

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

// Read reads an object and returns it untyped and decoded, nil and nil if it does not exist.
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

// ReadInto returns a function for an errgroup.Group that sets live, which may be nil, and typed to the results of Read.
func ReadInto[T any](ctx context.Context, from client.Reader, o Object, live **unstructured.Unstructured, typed **T) func() error {
	return func() error {
		object, decoded, err := Read[T](ctx, from, o)
		if *typed = decoded; live != nil {
			*live = object
		}
		return err
	}
}

// Unserved returns the required and the optional kinds that are not served. It fails if the API server is unavailable.
func Unserved(mapper meta.RESTMapper, objects []Object) (missing []string, absent []schema.GroupVersionKind, err error) {
	required := map[schema.GroupVersionKind]bool{}
	for _, o := range objects {
		required[o.GroupVersionKind] = required[o.GroupVersionKind] || !o.Optional
	}
	for gvk, isRequired := range required {
		switch _, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version); {
		case err == nil:
		case !IsNotServed(err):
			return nil, nil, fmt.Errorf("discovering %s: %w", gvk.Kind, err)
		case isRequired:
			missing = append(missing, gvk.Kind+"."+gvk.GroupVersion().String())
		default:
			absent = append(absent, gvk)
		}
	}
	slices.Sort(missing)
	return missing, absent, nil
}

// IsNotServed reports whether an error of a RESTMapper means that an available API server does not serve the kind.
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
