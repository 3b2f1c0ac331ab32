package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/status"
)

// Controller is one module's controller: it looks at everything whenever something changes, brings the decision onto the cluster
// and tells how that went.
type Controller struct {
	// Look is the module's. Its error is retried with back-off.
	Look Look
	// Reporter tells the result.
	Reporter *status.Reporter
	// Wake has it look again at every value, because of something that no watch tells; nil for never.
	Wake <-chan struct{}

	// changes counts what the watches told, untold the results in a row that were out of date before they could be told.
	changes atomic.Int64
	untold  int
}

// maxUntold is how many may be: where something changes all the time, it is told all the same.
const maxUntold = 3

// Reconcile implements reconcile.Reconciler. It is never run concurrently.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	before := c.changes.Load()
	target, result, err := c.Look(ctx)
	if ctx.Err() != nil {
		return reconcile.Result{}, nil // what failed because the process stops is no result
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	after, failure := result.Requeue()
	if result.State == patch.Progressing && failure == nil && c.changes.Load() != before && c.untold < maxUntold {
		// It is looked again at once. What is only on its way, and already not where it was, is not worth the writes of a status and an event: on
		// a single node they are in the way of the patch itself, because everything there reacts to the same change.
		c.untold++
		return reconcile.Result{}, nil
	}
	c.untold = 0
	again, err := c.Reporter.Report(ctx, target, result)
	if ctx.Err() != nil {
		return reconcile.Result{}, nil
	}
	if err := errors.Join(failure, err); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: sooner(after, again)}, nil
}

// Watch adds the controller to the manager. It looks once at its start, and then whenever one of the module's objects changes.
func (c *Controller) Watch(mgr ctrl.Manager, m Module, env Environment) error {
	one := reconcile.Request{NamespacedName: Infrastructure.Key()}
	enqueue := handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, *unstructured.Unstructured) []reconcile.Request {
		c.changes.Add(1)
		return []reconcile.Request{one}
	})
	b := builder.ControllerManagedBy(mgr).Named(m.Name()).WithOptions(controller.Options{MaxConcurrentReconciles: 1})
	told := handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, *metav1.PartialObjectMetadata) []reconcile.Request {
		c.changes.Add(1)
		return []reconcile.Request{one}
	})
	for _, o := range m.Objects() {
		if o.MetadataOnly {
			b = b.WatchesRawSource(source.Kind(env.aside[o], o.metadata(), told, o.changed()))
			continue
		}
		if !slices.Contains(env.Absent, o.GroupVersionKind) {
			b = b.WatchesRawSource(source.Kind(mgr.GetCache(), o.Unstructured(), enqueue))
		}
	}
	// The first look does not wait for an event: where no object exists yet there is none, and that is worth saying.
	b = b.WatchesRawSource(source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(one)
		go wake(ctx, c.Wake, func() { queue.Add(one) })
		return nil
	}))
	if err := b.Complete(reconcile.Reconciler(c)); err != nil {
		return fmt.Errorf("building the controller: %w", err)
	}
	return nil
}

// wake does something for every value, until the context ends.
func wake(ctx context.Context, values <-chan struct{}, do func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-values:
			do()
		}
	}
}

// changed lets those updates through that change what counts of an object of which only metadata is held.
func (o Object) changed() predicate.TypedPredicate[*metav1.PartialObjectMetadata] {
	counting := func(m *metav1.PartialObjectMetadata) map[string]string {
		annotations := map[string]string{}
		for name, value := range m.Annotations {
			if o.Annotations != "" && strings.HasPrefix(name, o.Annotations) {
				annotations[name] = value
			}
		}
		return annotations
	}
	return predicate.TypedFuncs[*metav1.PartialObjectMetadata]{UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
		return !maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) || !maps.Equal(counting(e.ObjectOld), counting(e.ObjectNew))
	}}
}

// Reporter is the reporter of a module as the options ask for it. object names what is patched in the metrics.
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

// Applier is an applier of a module as the options ask for it.
func (e Environment) Applier(module string, overridable ...apply.Overridable) *apply.Applier {
	return &apply.Applier{
		Client: e.Client, Module: module, Overridable: overridable,
		ForceConflicts: e.Options.ForceConflicts, DryRun: e.Options.DryRun, Recorder: e.Metrics,
	}
}

func sooner(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
