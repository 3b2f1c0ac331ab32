// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/status"
	"github.com/solonode/sno/topology"
)

// Controller is one module's controller. It has a single request, which reconciles all objects.
type Controller struct {
	// ReconcileFunc is retried with back-off after an error.
	ReconcileFunc ReconcileFunc
	Cluster       func(context.Context) (*topology.Cluster, error)
	Reporter      *status.Reporter

	reported  string    // the last reported reason, "" for none
	changedAt time.Time // when the state first differed from the reported one
}

// reportDelay is the delay before a new state is reported: on a single node one change has many short-lived effects,
// and a Warning about each would be a false alarm. Failures, opt-outs and dry runs are reported at once.
const reportDelay = 500 * time.Millisecond

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	target, result, err := c.ReconcileFunc(ctx, cluster)
	if ctx.Err() != nil {
		return reconcile.Result{}, nil // the process is stopping
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if remaining := c.delay(result); remaining > 0 && result.Err == nil {
		return reconcile.Result{RequeueAfter: MinRequeueAfter(result.After, remaining)}, nil
	}
	requeueAfter, err := c.Reporter.Report(ctx, target, result)
	if ctx.Err() != nil {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: MinRequeueAfter(result.After, requeueAfter)}, errors.Join(result.Err, err)
}

// delay returns for how much longer the result must not be reported.
func (c *Controller) delay(result patch.Result) time.Duration {
	if c.changedAt.IsZero() {
		c.changedAt = time.Now()
	}
	remaining := reportDelay - time.Since(c.changedAt)
	switch result.State {
	case patch.Progressing, patch.Waiting, patch.Blocked:
		return remaining
	case patch.InForce, patch.NotNeeded:
		if remaining > 0 && c.reported != "" && c.reported != result.Reason {
			return remaining
		}
	case patch.OptedOut, patch.WouldChange, patch.Reverted, patch.Failed:
	}
	c.reported, c.changedAt = result.Reason, time.Time{}
	return 0
}

// Add adds the module's controller to the manager.
func Add(mgr ctrl.Manager, m Module, env Environment) error {
	if custom, ok := m.(Setup); ok {
		return custom.Setup(mgr, env)
	}
	reconcileFunc, err := m.Reconciler(env)
	if err != nil {
		return err
	}
	prefix, object := m.StatusNames()
	c := &Controller{ReconcileFunc: reconcileFunc, Reporter: env.Reporter(mgr, m.Name(), prefix, object)}
	return c.Watch(mgr, m, env)
}

// Watch adds the controller. It reconciles at its start and when one of the module's objects changes (R-SNO-7).
func (c *Controller) Watch(mgr ctrl.Manager, m Module, env Environment) error {
	c.Cluster = env.Cluster
	b := builder.ControllerManagedBy(mgr).Named(m.Name())
	for _, o := range m.Objects() {
		switch from := env.Caches[o]; {
		case from == nil: // not served
		case o.MetadataOnly:
			b = b.WatchesRawSource(source.Kind(from, o.PartialMetadata(), enqueue[*metav1.PartialObjectMetadata](), o.changed()))
		default:
			b = b.WatchesRawSource(source.Kind(from, o.Unstructured(), enqueue[*unstructured.Unstructured]()))
		}
	}
	// The first reconciliation must not wait for an event: without objects there is none.
	b = b.WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(singleRequest)
		return nil
	}))
	if err := b.Complete(reconcile.Reconciler(c)); err != nil {
		return fmt.Errorf("building the controller: %w", err)
	}
	return nil
}

var singleRequest = reconcile.Request{NamespacedName: Infrastructure.Key()}

func enqueue[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, T) []reconcile.Request { return []reconcile.Request{singleRequest} })
}

// changed returns a predicate for changed labels, and for changed annotations with the object's prefix.
func (o Object) changed() predicate.TypedPredicate[*metav1.PartialObjectMetadata] {
	relevant := func(m *metav1.PartialObjectMetadata) map[string]string {
		annotations := maps.Clone(m.Annotations)
		maps.DeleteFunc(annotations, func(name, _ string) bool { return o.Annotations == "" || !strings.HasPrefix(name, o.Annotations) })
		return annotations
	}
	return predicate.TypedFuncs[*metav1.PartialObjectMetadata]{UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
		return !maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) || !maps.Equal(relevant(e.ObjectOld), relevant(e.ObjectNew))
	}}
}

// MinRequeueAfter returns the shorter of two requeue times; 0 means never.
func MinRequeueAfter(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
