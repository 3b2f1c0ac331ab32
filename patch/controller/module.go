// Package controller is the controller of one module: it reconciles everything whenever one of the module's objects changes, and reports
// the result. A module works without a manager as well: [OnceEnvironment] returns the environment of a single reconciliation by a command.
package controller

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/metrics"
	"github.com/solonode/sno/patch/status"
	"github.com/solonode/sno/topology"
)

// ErrObject is returned for an object with an invalid selector, and for reads of one that no module lists.
var ErrObject = errors.New("invalid object")

// Module is one operator's patch, as its controller and its process see it.
type Module interface {
	Name() string
	// BindFlags declares the module's own flags.
	BindFlags(*flag.FlagSet)
	// Validate returns an error for invalid flags.
	Validate() error
	// Objects lists what the module reads. Nothing else is cached.
	Objects() []Object
	// StatusNames returns the prefix of the types of the module's sub-conditions, and the name of what it patches in the metrics.
	StatusNames() (prefix, object string)
	// Reconciler returns the function that reconciles.
	Reconciler(Environment) (ReconcileFunc, error)
}

// Setup is implemented by a module whose controller does more than call its ReconcileFunc at every change of its objects.
type Setup interface {
	// Setup adds the module's controller to the manager. The process leads and its caches are filled.
	Setup(ctrl.Manager, Environment) error
}

// RequeueDelay is when to reconcile again after one of several writes, unless an event of it comes first.
const RequeueDelay = 50 * time.Millisecond

// ReconcileFunc reads, decides and writes one step; it is never called concurrently. cluster is the topology, nil before an Infrastructure was
// read. target is the operator's own resource, for the conditions; nil when there is none. After an error nothing is reported.
type ReconcileFunc func(ctx context.Context, cluster *topology.Cluster) (target *unstructured.Unstructured, result patch.Result, err error)

// Environment is what a module reads and writes with.
type Environment struct {
	Options  Options
	Metrics  *metrics.Metrics
	Topology *Topology
	// Client is for writes.
	Client client.Client
	// Reader reads the module's objects from the caches, Live from the API server. Neither finds objects of an optional kind that is
	// not served.
	Reader, Live client.Reader
	// Once reports whether this is a single reconciliation: no node is drained, and there is no debouncing.
	Once bool
	// Caches hold the module's objects; empty with OnceEnvironment.
	Caches Caches
}

// Cluster returns the topology, nil before an Infrastructure was read.
func (e Environment) Cluster(ctx context.Context) (*topology.Cluster, error) {
	return e.Topology.Read(ctx, e.Reader)
}

// Metadata returns a reader of one of the module's Objects that are MetadataOnly.
func (e Environment) Metadata(o Object) client.Reader {
	if cache := e.Caches[o]; cache != nil {
		return cache
	}
	return e.Live
}

// Applier returns an applier of a module with the options.
func (e Environment) Applier(module string, overridable ...apply.Overridable) *apply.Applier {
	return &apply.Applier{
		Client: e.Client, Module: module, Overridable: overridable,
		ForceConflicts: e.Options.ForceConflicts, DryRun: e.Options.DryRun, Recorder: e.Metrics,
	}
}

// Reporter returns a reporter of a module with the options. object names what is patched in the metrics. A dry run reports nothing but
// metrics.
func (e Environment) Reporter(mgr ctrl.Manager, module, prefix, object string) *status.Reporter {
	reporter := &status.Reporter{Module: module, Prefix: prefix, Object: object, Sink: status.None{}, Metrics: e.Metrics}
	if e.Options.DryRun {
		return reporter
	}
	if e.Options.StatusTarget == StatusOperator {
		reporter.Sink = &status.OperatorConditions{Client: mgr.GetClient(), Module: module}
	}
	reporter.Events = mgr.GetEventRecorder("sno-" + module)
	return reporter
}

// Object is one object that a module reads, or, without a name, all of a kind in a namespace or the cluster.
type Object struct {
	schema.GroupVersionKind
	Namespace, Name string
	// Labels is a label selector, for objects without a name. Unless MetadataOnly, a kind is read with one selector only.
	Labels string
	// Optional reports whether the module also works on a cluster that does not serve the kind.
	Optional bool
	// MetadataOnly caches only metadata, which only the reader of Environment.Metadata finds. The module is reconciled when such an
	// object is created or deleted, or when its labels or the annotations with the prefix Annotations change.
	MetadataOnly bool
	Annotations  string
}

// Unstructured returns an empty object of the kind with the name. All modules read this form, which keeps fields that this build does
// not know.
func (o Object) Unstructured() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.GroupVersionKind)
	u.SetNamespace(o.Namespace)
	u.SetName(o.Name)
	return u
}

// Key returns the object's name for a client.
func (o Object) Key() client.ObjectKey { return client.ObjectKey{Namespace: o.Namespace, Name: o.Name} }

// PartialMetadata returns an empty object of the kind.
func (o Object) PartialMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(o.GroupVersionKind)
	return m
}

// Selector returns Labels, nil for all. The error is an ErrObject.
func (o Object) Selector() (labels.Selector, error) {
	if o.Labels == "" {
		return nil, nil
	}
	selector, err := labels.Parse(o.Labels)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrObject, o.Kind, err)
	}
	return selector, nil
}
