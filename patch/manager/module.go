package manager

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/metrics"
)

// ErrObject is returned for an object that no cache can be made for.
var ErrObject = errors.New("invalid object")

// Module is one operator's patch, as the manager sees it.
type Module interface {
	// Name is the module's name.
	Name() string
	// BindFlags declares the module's own flags.
	BindFlags(*flag.FlagSet)
	// Validate reports flags that do not make sense.
	Validate() error
	// Objects lists what the module reads. Nothing else is cached, so a large cluster costs no more than a small one.
	Objects() []Object
	// Look makes what looks at everything that the module is about. It needs no manager: all that it reads and writes by is in the
	// environment.
	Look(Environment) (Look, error)
	// Setup adds the module's controller, which is a Look and what has it look again. It is called when every kind is served and
	// every object's cache is synced, once per time that the manager becomes leader.
	Setup(ctrl.Manager, Environment) error
}

// Look gathers, decides and applies. target is the operator's own resource, on which the result is shown; nil when there is none. An
// error means that nothing could be decided. It is never called concurrently.
type Look func(context.Context) (target *unstructured.Unstructured, result patch.Result, err error)

// Environment is what the manager gives every module.
type Environment struct {
	Options Options
	Metrics *metrics.Metrics
	// Client is what the module writes by.
	Client client.Client
	// Reader reads the module's objects from the cache. Of an optional kind that is not served it finds none.
	Reader client.Reader
	// Live reads from the API server, never from a cache.
	Live client.Reader
	// Once says that a person asked for this one look. Nothing goes on after it, so no node is drained; and what a controller does only
	// when it has been wanted for a while is done at once.
	Once bool
	// Absent lists the optional kinds that the cluster does not serve.
	Absent []schema.GroupVersionKind

	// aside are the caches of what is MetadataOnly.
	aside map[Object]cache.Cache
}

// Metadata reads the object, or the objects, of which only metadata is held, from the cache. It must be one of the module's Objects.
func (e Environment) Metadata(o Object) client.Reader {
	if e.Once {
		return e.Live
	}
	return e.aside[o]
}

// Object is one object that a module reads, or, without a name, a namespace or a cluster full of them.
type Object struct {
	schema.GroupVersionKind
	Namespace, Name string
	// Labels is a label selector in its text form, for objects without a name; empty selects all. A kind is read with one
	// selector only.
	Labels string
	// Optional says that the module also works on a cluster that does not serve the kind. When it comes to be served, the
	// controllers start again and read it.
	Optional bool
	// MetadataOnly says that only its coming, its going and its labels count, and that the module reads it from the API server, if
	// at all. No Reader but that of Environment.Metadata finds it in a cache, and nothing but metadata is held of it. There may be
	// several selectors for a kind.
	MetadataOnly bool
	// Annotations says of what is MetadataOnly that annotations count as well whose names begin like this; empty for none.
	Annotations string
}

// Unstructured is an empty object of the kind, with which a client reads it and a source watches it. All modules read this
// form, so that there is one cache per kind and no field is lost that this build does not know.
func (o Object) Unstructured() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.GroupVersionKind)
	u.SetNamespace(o.Namespace)
	u.SetName(o.Name)
	return u
}

// Key is the object's name for a client.
func (o Object) Key() client.ObjectKey { return client.ObjectKey{Namespace: o.Namespace, Name: o.Name} }

// cacheOptions restrict the caches to exactly the objects: one list and one watch per kind and namespace, by name where only
// one object is wanted.
func cacheOptions(objects []Object) (cache.Options, error) {
	byKind := map[schema.GroupVersionKind]map[string][]string{}
	for _, o := range objects {
		if byKind[o.GroupVersionKind] == nil {
			byKind[o.GroupVersionKind] = map[string][]string{}
		}
		names := byKind[o.GroupVersionKind][o.Namespace]
		if !slices.Contains(names, o.Name) {
			byKind[o.GroupVersionKind][o.Namespace] = append(names, o.Name)
		}
	}
	options := cache.Options{ByObject: map[client.Object]cache.ByObject{}}
	for gvk, namespaces := range byKind {
		by := cache.ByObject{}
		for namespace, names := range namespaces {
			var selector fields.Selector
			if len(names) == 1 && names[0] != "" {
				selector = fields.OneTermEqualSelector("metadata.name", names[0])
			}
			if namespace == "" {
				by.Field = selector
				continue
			}
			if by.Namespaces == nil {
				by.Namespaces = map[string]cache.Config{}
			}
			by.Namespaces[namespace] = cache.Config{FieldSelector: selector}
		}
		for _, o := range objects {
			if o.GroupVersionKind == gvk && o.Labels != "" {
				selector, err := labels.Parse(o.Labels)
				if err != nil {
					return cache.Options{}, fmt.Errorf("%w: %s: %w", ErrObject, gvk.Kind, err)
				}
				by.Label = selector
			}
		}
		options.ByObject[Object{GroupVersionKind: gvk}.Unstructured()] = by
	}
	return options, nil
}

// metadata is an empty object of the kind that has nothing but metadata.
func (o Object) metadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(o.GroupVersionKind)
	return m
}

// metadataCache makes a cache of nothing but the object, of a kind that may be watched in other ways as well.
func (o Object) metadataCache(mgr ctrl.Manager) (cache.Cache, error) {
	options := cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
	}
	if o.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
	}
	if o.Name != "" {
		options.DefaultFieldSelector = fields.OneTermEqualSelector("metadata.name", o.Name)
	}
	if o.Labels != "" {
		selector, err := labels.Parse(o.Labels)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrObject, o.Kind, err)
		}
		options.DefaultLabelSelector = selector
	}
	made, err := cache.New(mgr.GetConfig(), options)
	if err != nil {
		return nil, fmt.Errorf("making a cache of %s: %w", o.Kind, err)
	}
	return made, nil
}

// kinds lists the kinds of the objects, those that must be served or those that need not be.
func kinds(objects []Object, optional bool) []schema.GroupVersionKind {
	needed := func(gvk schema.GroupVersionKind) bool {
		return slices.ContainsFunc(objects, func(o Object) bool { return o.GroupVersionKind == gvk && !o.Optional })
	}
	var out []schema.GroupVersionKind
	for _, o := range objects {
		if !slices.Contains(out, o.GroupVersionKind) && needed(o.GroupVersionKind) != optional {
			out = append(out, o.GroupVersionKind)
		}
	}
	return out
}
