package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/metrics"
)

// ErrNotServed is returned for a cluster that does not serve a kind without which a module decides nothing.
var ErrNotServed = errors.New("the cluster does not serve")

// Once is the environment of a single look, without a manager and without caches: everything is read and written by the client.
// What the client reads must be whole, with managedFields.
//
// A cluster without a kind that the module needs is an ErrNotServed which names it. An API server that does not answer is an error
// as the client has it.
func Once(c client.Client, options Options, m Module) (Environment, error) {
	missing, err := notServed(c, kinds(m.Objects(), false))
	if err != nil {
		return Environment{}, err
	}
	if len(missing) > 0 {
		names := make([]string, len(missing))
		for i, gvk := range missing {
			names[i] = gvk.Kind + "." + gvk.GroupVersion().String()
		}
		slices.Sort(names)
		return Environment{}, fmt.Errorf("%w %s", ErrNotServed, strings.Join(names, ", "))
	}
	absent, err := notServed(c, kinds(m.Objects(), true))
	if err != nil {
		return Environment{}, err
	}
	counters, err := metrics.New(prometheus.NewRegistry()) // nobody asks for them
	if err != nil {
		return Environment{}, err
	}
	read := reader{selecting{c, m.Objects()}, absent, nil}
	return Environment{Options: options, Metrics: counters, Client: c, Reader: read, Live: reader{c, absent, nil}, Once: true, Absent: absent}, nil
}

// notServed lists those of the kinds that are not served.
func notServed(c client.Client, wanted []schema.GroupVersionKind) ([]schema.GroupVersionKind, error) {
	var missing []schema.GroupVersionKind
	for _, gvk := range wanted {
		switch _, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); {
		case err == nil:
		case isNotServed(err):
			missing = append(missing, gvk)
		default:
			return nil, fmt.Errorf("asking whether %s is served: %w", gvk.Kind, err)
		}
	}
	return missing, nil
}

// selecting lists of a kind only what a cache of the objects would hold.
type selecting struct {
	client.Reader
	objects []Object
}

// List implements client.Reader.
func (s selecting) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk := list.GetObjectKind().GroupVersionKind()
	for _, o := range s.objects {
		if o.Labels == "" || o.MetadataOnly || o.GroupVersion().WithKind(o.Kind+"List") != gvk {
			continue
		}
		selector, err := labels.Parse(o.Labels)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrObject, o.Kind, err)
		}
		opts = append(opts, client.MatchingLabelsSelector{Selector: selector})
	}
	return s.Reader.List(ctx, list, opts...)
}
