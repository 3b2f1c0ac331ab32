package status

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/metrics"
)

// DefaultInertia is how long a failure must last before it is reported as one: the default of OpenShift's own operators.
const DefaultInertia = 2 * time.Minute

// Reporter tells how the patch of one object stands, everywhere it is to be told.
type Reporter struct {
	// Module and Prefix name the module and begin its condition types.
	Module, Prefix string
	// Object names the patched object in the metrics, such as "ingresscontroller/default".
	Object string
	Sink   Sink
	// Events sends events; nil for none.
	Events events.EventRecorder
	// Metrics shows gauges; nil for none.
	Metrics *metrics.Metrics
	// Inertia is how long a failure lasts before it counts as persistent; zero means DefaultInertia.
	Inertia time.Duration
	// Clock is the time; nil for the real one.
	Clock clock.PassiveClock

	mu           sync.Mutex
	last         string
	failingSince time.Time
}

// Report shows a result. target is the operator's own resource, which carries the conditions and which events are about; nil
// when there is none. It returns when to report again although nothing changed, 0 for never.
func (r *Reporter) Report(ctx context.Context, target *unstructured.Unstructured, result patch.Result) (time.Duration, error) {
	again, persistent := r.transition(ctx, target, result)
	if r.Metrics != nil {
		r.Metrics.RecordResult(r.Module, r.Object, result)
	}
	reassert, err := r.Sink.Show(ctx, target, result.Conditions(r.Prefix, persistent))
	if reassert > 0 && (again == 0 || reassert < again) {
		again = reassert
	}
	return again, err
}

// transition logs and sends what is new, and tells when a failure becomes persistent and whether it is.
func (r *Reporter) transition(ctx context.Context, target *unstructured.Unstructured, result patch.Result) (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == "" && target != nil {
		// A restart is no transition: what an earlier process showed is where this one begins.
		if conditions, err := Conditions(target); err == nil {
			for _, c := range conditions {
				if c.Type == patch.InForceCondition(r.Prefix) {
					r.last = c.Reason
				}
			}
		}
	}
	if event, ok := result.Transition(r.last); ok {
		logr.FromContextOrDiscard(ctx).Info("Patch changed state", "object", r.Object, "state", result.State.String(),
			"reason", result.Reason, "message", result.Message)
		if r.Events != nil && target != nil {
			r.Events.Eventf(target, nil, event.Type, event.Reason, event.Action, "%s", event.Note)
		}
	}
	r.last = result.Reason

	now := time.Now
	if r.Clock != nil {
		now = r.Clock.Now
	}
	if !result.Failing() {
		r.failingSince = time.Time{}
		return 0, false
	}
	if r.failingSince.IsZero() {
		r.failingSince = now()
	}
	inertia := r.Inertia
	if inertia == 0 {
		inertia = DefaultInertia
	}
	if left := inertia - now().Sub(r.failingSince); left > 0 {
		return left, false
	}
	return 0, true
}
