// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/metrics"
)

// FailingAfter is when a failure becomes persistent: the default of OpenShift's operators.
const FailingAfter = 2 * time.Minute

// Reporter reports the state of the patch of one object. It is not safe for concurrent use.
type Reporter struct {
	Module  string
	Prefix  string // of the condition types
	Object  string // its name in metrics, such as "ingresscontroller/default"
	Sink    Sink
	Events  events.EventRecorder // may be nil
	Metrics *metrics.Metrics     // may be nil
	Now     func() time.Time     // nil for time.Now

	last         string
	failingSince time.Time
}

// Report reports the result, with the conditions of target unless it is nil. It returns when to repeat it, 0 for never.
func (r *Reporter) Report(ctx context.Context, target *unstructured.Unstructured, result patch.Result) (time.Duration, error) {
	r.transition(ctx, target, result)
	again, persistent := r.failing(result)
	if r.Metrics != nil {
		r.Metrics.RecordResult(r.Module, r.Object, result)
	}
	reassert, err := r.Sink.Publish(ctx, target, result.Conditions(r.Prefix, persistent))
	if reassert > 0 && (again == 0 || reassert < again) {
		again = reassert
	}
	return again, err
}

func (r *Reporter) transition(ctx context.Context, target *unstructured.Unstructured, result patch.Result) {
	if r.last == "" && target != nil {
		// A restart is no transition.
		if conditions, err := Conditions(target); err == nil {
			for _, c := range conditions {
				if c.Type == patch.InForceCondition(r.Prefix) {
					r.last = c.Reason
				}
			}
		}
	}
	if eventType, action := result.Transition(r.last); eventType != "" {
		logr.FromContextOrDiscard(ctx).Info("Patch changed state", "object", r.Object, "state", result.State.String(),
			"reason", result.Reason, "message", result.Message)
		if r.Events != nil && target != nil {
			r.Events.Eventf(target, nil, eventType, result.Reason, action, "%s", result.Message)
		}
	}
	r.last = result.Reason
}

// failing reports whether the result is a persistent failure, or after what time it will be.
func (r *Reporter) failing(result patch.Result) (after time.Duration, persistent bool) {
	if !result.Failing() {
		r.failingSince = time.Time{}
		return 0, false
	}
	now := timeOf(r.Now)
	if r.failingSince.IsZero() {
		r.failingSince = now
	}
	after = max(FailingAfter-now.Sub(r.failingSince), 0)
	return after, after == 0
}

// timeOf returns the time of a clock that a test has set, or the real time.
func timeOf(now func() time.Time) time.Time {
	if now == nil {
		return time.Now()
	}
	return now()
}
