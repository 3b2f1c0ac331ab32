// SPDX-License-Identifier: Apache-2.0

package librarygo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openshift/library-go/pkg/controller/factory"
	"github.com/openshift/library-go/pkg/operator/events"
	"github.com/openshift/library-go/pkg/operator/management"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

// Each controller needs one round more than there are keys or copies to pass on, which are two. kube-apiserver also
// merges copied bundles.
const maxRounds = 5

// ErrUnmanaged is returned for an operator that is not managed: its controllers would do nothing without an error.
var ErrUnmanaged = errors.New("spec.managementState must be Managed")

// managed returns a function that reconciles if the operator is managed.
func (o Operator) managed(s *store.Session, sync loop.Sync) loop.Sync {
	return func(ctx context.Context) error {
		spec, _, _, err := o.client(s).GetOperatorStateWithQuorum(ctx)
		if err != nil {
			return err
		}
		if !management.IsOperatorManaged(spec.ManagementState) {
			return fmt.Errorf("%s %s: %w, and is %s", o, instance, ErrUnmanaged, spec.ManagementState)
		}
		return sync(ctx)
	}
}

// reconcile returns a function that runs the controller once.
func reconcile(controller factory.Controller, s *store.Session) loop.Sync {
	stopQueue(controller)
	return reconcileOnly(controller, s)
}

// reconcileOnly is reconcile for a controller without a queue.
func reconcileOnly(controller interface {
	Sync(context.Context, factory.SyncContext) error
}, s *store.Session,
) loop.Sync {
	return func(ctx context.Context) error {
		if err := controller.Sync(ctx, syncContext{recorder: recorder(s)}); err != nil {
			return fmt.Errorf("reconcile: %w", err)
		}
		return nil
	}
}

// stopQueue ends the goroutines of the work queue that a controller's constructor starts.
func stopQueue(controller interface{ Run(context.Context, int) }) {
	ctx, cancel := context.WithCancel(background())
	cancel()
	controller.Run(ctx, 0)
}

// background is for methods of library-go without a context. The store answers immediately.
func background() context.Context {
	return context.Background() //nolint:forbidigo // library-go passes none
}

// recorder discards events: there is no cluster yet.
func recorder(s *store.Session) events.Recorder {
	return events.NewInMemoryRecorder(s.Name(), clock.RealClock{})
}

type syncContext struct {
	recorder events.Recorder
}

func (c syncContext) Queue() workqueue.RateLimitingInterface { return noQueue{} } //nolint:staticcheck // the type is library-go's

func (c syncContext) QueueKey() string { return factory.DefaultQueueKey }

func (c syncContext) Recorder() events.Recorder { return c.recorder }

// noQueue drops items: the cycle runs the controller again.
type noQueue struct {
	workqueue.RateLimitingInterface
}

func (noQueue) Add(any) {}

func (noQueue) AddAfter(any, time.Duration) {}

func (noQueue) AddRateLimited(any) {}
