// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Caches maps each Object to its cache, not all to one with cache.ByObject: the modules may list and watch only objects
// of these names, and ByObject has one field selector for all objects of a kind in a namespace. The cache of an
// optional kind that is not served is nil and counts as empty.
type Caches map[Object]cache.Cache

// NewCaches adds a cache of each object to the manager. It sends no requests.
func NewCaches(mgr ctrl.Manager, objects []Object) (Caches, error) {
	caches := Caches{}
	for _, o := range objects {
		if caches[o] != nil {
			continue
		}
		options, err := o.cacheOptions()
		if err != nil {
			return nil, err
		}
		options.HTTPClient, options.Scheme, options.Mapper = mgr.GetHTTPClient(), mgr.GetScheme(), mgr.GetRESTMapper()
		created, err := cache.New(mgr.GetConfig(), options)
		if err == nil {
			err = mgr.Add(managed{created})
		}
		if err != nil {
			return nil, fmt.Errorf("creating a cache of %s: %w", o.Kind, err)
		}
		caches[o] = created
	}
	return caches, nil
}

func (o Object) cacheOptions() (cache.Options, error) {
	options := cache.Options{}
	if o.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
	}
	if o.Name != "" {
		options.DefaultFieldSelector = fields.OneTermEqualSelector("metadata.name", o.Name)
	}
	if o.MetadataOnly {
		options.DefaultTransform = cache.TransformStripManagedFields()
	}
	var err error
	options.DefaultLabelSelector, err = o.Selector()
	return options, err
}

// managed makes the manager start and stop a cache like its own.
type managed struct{ cache.Cache }

func (m managed) GetCache() cache.Cache { return m.Cache }

// Fill starts and syncs the caches of all kinds that are not absent. It returns false if the context ends first.
func (c Caches) Fill(ctx context.Context, absent []schema.GroupVersionKind) (bool, error) {
	for o, from := range c {
		if slices.Contains(absent, o.GroupVersionKind) {
			c[o] = nil
			continue
		}
		var empty client.Object = o.Unstructured()
		if o.MetadataOnly {
			empty = o.PartialMetadata()
		}
		if _, err := from.GetInformer(ctx, empty, cache.BlockUntilSynced(false)); err != nil {
			return false, fmt.Errorf("watching %s: %w", o.Kind, err)
		}
	}
	for _, from := range c {
		if from != nil && !from.WaitForCacheSync(ctx) {
			return false, nil
		}
	}
	return true, nil
}

// Get implements client.Reader. It returns an ErrObject for an object that no module lists or that is MetadataOnly.
func (c Caches) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	gvk := object.GetObjectKind().GroupVersionKind()
	err := fmt.Errorf("%w: %s %s is not among the objects of a module", ErrObject, gvk.Kind, key)
	for o, from := range c {
		switch {
		case !o.covers(gvk, key.Namespace) || o.Name != "" && o.Name != key.Name:
			continue
		case from == nil:
			return notFound(gvk, key)
		}
		if err = from.Get(ctx, key, object, opts...); !apierrors.IsNotFound(err) {
			return err
		}
	}
	return err
}

// List implements client.Reader.
func (c Caches) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, namespace := list.GetObjectKind().GroupVersionKind(), (&client.ListOptions{}).ApplyOptions(opts).Namespace
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	for o, from := range c {
		switch {
		case !o.covers(gvk, namespace) || o.Name != "":
			continue
		case from == nil:
			return nil
		}
		return from.List(ctx, list, opts...)
	}
	return fmt.Errorf("%w: %s is not among the objects of a module", ErrObject, gvk.Kind)
}

func (o Object) covers(gvk schema.GroupVersionKind, namespace string) bool {
	return o.GroupVersionKind == gvk && !o.MetadataOnly && (o.Namespace == "" || o.Namespace == namespace)
}

func notFound(gvk schema.GroupVersionKind, key client.ObjectKey) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
}
