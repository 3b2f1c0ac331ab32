// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/metrics"
)

// ErrNotServed is returned if the cluster does not serve a kind that a module requires.
var ErrNotServed = errors.New("the cluster does not serve")

// OnceEnvironment returns the environment of a single reconciliation without a manager. The client must read
// managedFields. A cluster that does not serve a required kind is an ErrNotServed.
func OnceEnvironment(c client.Client, options Options, m Module) (Environment, error) {
	missing, absent, err := Unserved(c.RESTMapper(), m.Objects())
	if err != nil {
		return Environment{}, err
	}
	if len(missing) > 0 {
		return Environment{}, fmt.Errorf("%w %s", ErrNotServed, strings.Join(missing, ", "))
	}
	counters, err := metrics.New(prometheus.NewRegistry()) // never collected
	if err != nil {
		return Environment{}, err
	}
	return Environment{
		Options: options, Metrics: counters, Topology: &Topology{}, Client: c, Once: true,
		Reader: uncached{c, m.Objects(), absent}, Live: SkipUnserved(c, absent),
	}, nil
}

// SkipUnserved returns a reader that finds no objects of the absent kinds, without the two discovery requests per read.
func SkipUnserved(from client.Reader, absent []schema.GroupVersionKind) client.Reader {
	return uncached{from, nil, absent}
}

// uncached applies the label selectors of the objects, and finds no objects of the absent kinds.
type uncached struct {
	client.Reader
	objects []Object
	absent  []schema.GroupVersionKind
}

func (u uncached) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if gvk := object.GetObjectKind().GroupVersionKind(); slices.Contains(u.absent, gvk) {
		return notFound(gvk, key)
	}
	return u.Reader.Get(ctx, key, object, opts...)
}

func (u uncached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk := list.GetObjectKind().GroupVersionKind()
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	if slices.Contains(u.absent, gvk) {
		return nil
	}
	for _, o := range u.objects {
		if o.Labels == "" || o.MetadataOnly || o.GroupVersionKind != gvk {
			continue
		}
		selector, err := o.Selector()
		if err != nil {
			return err
		}
		opts = append(opts, client.MatchingLabelsSelector{Selector: selector})
	}
	return u.Reader.List(ctx, list, opts...)
}
