// SPDX-License-Identifier: Apache-2.0

// Package controller runs a module: it reconciles all objects when one changes. [OnceEnvironment] is for a single run.
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

// ErrObject is returned for an object with an invalid selector, and for reads of an object that no module lists.
var ErrObject = errors.New("invalid object")

// Module is one operator's patch.
type Module interface {
	Name() string
	// BindFlags declares the module's own flags.
	BindFlags(*flag.FlagSet)
	// Validate returns an error for invalid flags.
	Validate() error
	// Objects returns all objects that the module reads.
	Objects() []Object
	// StatusNames returns the prefix of the module's condition types, and the name of the patched object in metrics.
	StatusNames() (prefix, object string)
	Reconciler(Environment) (ReconcileFunc, error)
}

// Setup is implemented by a module with a custom controller.
type Setup interface {
	// Setup adds the module's controller to the manager. The process is the leader and its caches are synced.
	Setup(ctrl.Manager, Environment) error
}

// RequeueDelay is when to reconcile again between two writes, unless an event comes first.
const RequeueDelay = 50 * time.Millisecond

// ReconcileFunc carries out one step. cluster is nil before an Infrastructure was read. target is the operator's
// resource for the conditions, or nil. After an error nothing is reported. Calls are never concurrent.
type ReconcileFunc func(ctx context.Context, cluster *topology.Cluster) (target *unstructured.Unstructured, result patch.Result, err error)

// Environment holds the clients and options of a module.
type Environment struct {
	Options  Options
	Metrics  *metrics.Metrics
	Topology *Topology
	Client   client.Client // for writes
	// Reader reads the caches, Live the API server. Kinds that are not served have no objects.
	Reader, Live client.Reader
	// Once reports whether this is a single reconciliation, which drains no node and debounces nothing.
	Once bool
	// Caches holds the module's caches; it is empty with OnceEnvironment.
	Caches Caches
}

// Cluster returns the topology, nil before an Infrastructure was read.
func (e Environment) Cluster(ctx context.Context) (*topology.Cluster, error) {
	return e.Topology.Read(ctx, e.Reader)
}

// Metadata returns a reader of a MetadataOnly object.
func (e Environment) Metadata(o Object) client.Reader {
	if cache := e.Caches[o]; cache != nil {
		return cache
	}
	return e.Live
}

// Applier returns an applier of the module.
func (e Environment) Applier(module string, overridable ...apply.Overridable) *apply.Applier {
	return &apply.Applier{
		Client: e.Client, Module: module, Overridable: overridable,
		ForceConflicts: e.Options.ForceConflicts, DryRun: e.Options.DryRun, Recorder: e.Metrics,
	}
}

// Reporter returns a reporter of the module; object is the name in metrics. A dry run reports only metrics.
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
	// Labels selects objects without a name. A kind has one selector only, except for MetadataOnly.
	Labels string
	// Optional reports whether the module also works if the kind is not served.
	Optional bool
	// MetadataOnly caches only metadata, for Environment.Metadata. The module is reconciled when such an object is
	// created or deleted, and when its labels or the annotations with the prefix Annotations change.
	MetadataOnly bool
	Annotations  string
}

// Unstructured returns an empty object with the name, untyped to keep fields that this build does not have.
func (o Object) Unstructured() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.GroupVersionKind)
	u.SetNamespace(o.Namespace)
	u.SetName(o.Name)
	return u
}

// Key returns the key of the object.
func (o Object) Key() client.ObjectKey { return client.ObjectKey{Namespace: o.Namespace, Name: o.Name} }

// PartialMetadata returns an empty metadata object of the kind.
func (o Object) PartialMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(o.GroupVersionKind)
	return m
}

// Selector parses Labels; nil selects all. The error is an ErrObject.
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
