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
	"sigs.k8s.io/controller-runtime/pkg/client"
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

	// next is when it is time for the next look; nil before the first. It is monotonic: a node at the edge whose clock is set back must not stop looking.
	next atomic.Pointer[time.Time]
	// told is the reason that was told last of those that stand, empty for none; since is when the results began that differ from it, zero while none does.
	told  string
	since time.Time
}

// breather is the least time from the beginning of one look to that of the next. A rollout, and everything that we write ourselves, is an event: many times in
// a tenth of a second, all of which one look sees.
const breather = 25 * time.Millisecond

// inertia is how long it must have been otherwise than it was told before that is told. On a single node everything reacts to the same change: an
// operator is late by some milliseconds, a status and an event about that are out of date when they are written, and the ones about how it ended are in the
// way of other patches. Failures are told at once, and so is what a person has asked for.
const inertia = 500 * time.Millisecond

// Reconcile implements reconcile.Reconciler. It is never run concurrently.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	next := time.Now().Add(breather)
	c.next.Store(&next)
	target, result, err := c.Look(ctx)
	if ctx.Err() != nil {
		return reconcile.Result{}, nil // what failed because the process stops is no result
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	after, failure := result.Requeue()
	if left := c.untold(result); left > 0 && failure == nil {
		return reconcile.Result{RequeueAfter: sooner(after, left)}, nil
	}
	again, err := c.Reporter.Report(ctx, target, result)
	if ctx.Err() != nil {
		return reconcile.Result{}, nil
	}
	if err := errors.Join(failure, err); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: sooner(after, again)}, nil
}

// untold is for how long the result is not told yet, because it may be over by then or others may be busy.
func (c *Controller) untold(result patch.Result) time.Duration {
	switch result.State {
	case patch.OptedOut, patch.WouldChange, patch.Reverted, patch.Failed:
		c.told, c.since = result.Reason, time.Time{}
		return 0
	case patch.InForce, patch.NotNeeded:
		if left := c.otherwise(); left > 0 && c.told != "" && c.told != result.Reason {
			return left
		}
		c.told, c.since = result.Reason, time.Time{}
		return 0
	case patch.Progressing, patch.Waiting, patch.Blocked:
	}
	return c.otherwise()
}

// otherwise is how long it takes until it has been otherwise than was told for long enough.
func (c *Controller) otherwise() time.Duration {
	if c.since.IsZero() {
		c.since = time.Now()
	}
	return inertia - time.Since(c.since)
}

// Watch adds the controller to the manager. It looks once at its start, and then whenever one of the module's objects changes,
// the Infrastructure among them: so a change of the topology is followed without a restart (R-SNO-7).
func (c *Controller) Watch(mgr ctrl.Manager, m Module, env Environment) error {
	one := reconcile.Request{NamespacedName: Infrastructure.Key()}
	enqueue := enqueues[*unstructured.Unstructured](c, one)
	b := builder.ControllerManagedBy(mgr).Named(m.Name()).WithOptions(controller.Options{MaxConcurrentReconciles: 1})
	told := enqueues[*metav1.PartialObjectMetadata](c, one)
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

// enqueues has the controller look again: at once when it has been at rest, or when it is time.
func enqueues[T client.Object](c *Controller, one reconcile.Request) handler.TypedEventHandler[T, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	again := func(q queue) { q.AddAfter(one, c.pause()) }
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[T], q queue) { again(q) },
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[T], q queue) { again(q) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[T], q queue) { again(q) },
	}
}

// pause is how long it is until it is time for the next look.
func (c *Controller) pause() time.Duration {
	if next := c.next.Load(); next != nil {
		return time.Until(*next)
	}
	return 0
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
