// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"errors"
	"testing"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/metrics"
	"github.com/solonode/sno/patch/status"
)

type fakeSink struct {
	failing string
	again   time.Duration
	err     error
}

func (s *fakeSink) Publish(_ context.Context, _ *unstructured.Unstructured, conditions []operatorv1.OperatorCondition) (time.Duration, error) {
	for _, c := range conditions {
		if c.Type == "SamplePatchFailing" {
			s.failing = string(c.Status) + " " + c.Reason
		}
	}
	return s.again, s.err
}

type reporterFixture struct {
	*testing.T
	reporter *status.Reporter
	sink     *fakeSink
	recorder *events.FakeRecorder
	clock    *clocktesting.FakePassiveClock
}

func newReporterFixture(t *testing.T) *reporterFixture {
	r := &reporterFixture{T: t, sink: &fakeSink{}, recorder: events.NewFakeRecorder(10), clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0))}
	r.reporter = &status.Reporter{Module: "sample", Prefix: "Sample", Object: "sample/one", Sink: r.sink, Events: r.recorder}
	r.reporter.Now = r.clock.Now
	return r
}

// report must send the event ("" for none), publish the PatchFailing condition, and return the time.
func (r *reporterFixture) report(target *unstructured.Unstructured, state patch.State, reason, event, failing string, again time.Duration) {
	r.Helper()
	got, err := r.reporter.Report(r.Context(), target, patch.Result{State: state, Reason: reason, Message: "Because"})
	if !errors.Is(err, r.sink.err) {
		r.Fatal(err)
	}
	sent := ""
	select {
	case sent = <-r.recorder.Events:
	default:
	}
	if sent != event {
		r.Errorf("%s %s: event %q, want %q", state, reason, sent, event)
	}
	if r.sink.failing != failing {
		r.Errorf("%s %s: failing is %q, want %q", state, reason, r.sink.failing, failing)
	}
	if got != again {
		r.Errorf("%s %s: report again after %v, want %v", state, reason, got, again)
	}
}

func (r *reporterFixture) later(d time.Duration) { r.clock.SetTime(r.clock.Now().Add(d)) }

func sample() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Sample", "metadata": map[string]any{"name": "one"}}}
}

const fine = "False AsExpected"

func TestOneEventForATransition(t *testing.T) {
	r := newReporterFixture(t)
	r.report(sample(), patch.Progressing, "RollingOut", "Normal RollingOut Because", fine, 0)
	r.report(sample(), patch.Progressing, "RollingOut", "", fine, 0)
	r.report(sample(), patch.InForce, "AsExpected", "Normal AsExpected Because", fine, 0)
	r.report(sample(), patch.Blocked, "FieldOwnedByOther", "Warning FieldOwnedByOther Because", fine, 0)
	r.report(nil, patch.Waiting, "WaitingForObject", "", fine, 0)
	r.report(sample(), patch.Waiting, "WaitingForObject", "", fine, 0)
	r.report(sample(), patch.NotNeeded, "NotNeeded", "Normal NotNeeded Because", fine, 0)

	r = newReporterFixture(t)
	r.report(sample(), patch.NotNeeded, "NotNeeded", "", fine, 0)
	r.report(sample(), patch.InForce, "AsExpected", "Normal AsExpected Because", fine, 0)
}

func TestRestartIsNoTransition(t *testing.T) {
	target := sample()
	target.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "OtherPatchInForce", "status": "True", "reason": "AsExpected"},
		map[string]any{"type": "SamplePatchInForce", "status": "False", "reason": "Reverted"},
	}}
	r := newReporterFixture(t)
	r.report(target, patch.Reverted, "Reverted", "", fine, 2*time.Minute)
	r.report(target, patch.InForce, "AsExpected", "Normal AsExpected Because", fine, 0)
}

func TestFailingOnceItLasts(t *testing.T) {
	r := newReporterFixture(t)
	r.report(sample(), patch.Failed, "ApplyFailed", "Warning ApplyFailed Because", fine, 2*time.Minute)
	r.later(90 * time.Second)
	r.report(sample(), patch.Reverted, "Reverted", "Warning Reverted Because", fine, 30*time.Second)
	r.later(30 * time.Second)
	r.report(sample(), patch.Reverted, "Reverted", "", "True Reverted", 0)
	r.later(time.Hour)
	r.report(sample(), patch.Reverted, "Reverted", "", "True Reverted", 0)
	r.report(sample(), patch.Blocked, "FieldOwnedByOther", "Warning FieldOwnedByOther Because", fine, 0)
	r.report(sample(), patch.Failed, "ApplyFailed", "Warning ApplyFailed Because", fine, 2*time.Minute)
}

func TestReportAgainAtTheEarlierTime(t *testing.T) {
	r := newReporterFixture(t)
	r.sink.again = time.Minute
	r.report(sample(), patch.InForce, "AsExpected", "Normal AsExpected Because", fine, time.Minute)
	r.report(sample(), patch.Failed, "Invalid", "Warning Invalid Because", fine, time.Minute)
	r.sink.again = 10 * time.Minute
	r.report(sample(), patch.Failed, "Invalid", "", fine, 2*time.Minute)
	r.sink.err = errors.New("refused")
	r.report(sample(), patch.Failed, "Invalid", "", fine, 2*time.Minute)
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	for series, of := range []*metrics.Metrics{nil, m} {
		reporter := &status.Reporter{Module: "sample", Prefix: "Sample", Object: "sample/one", Sink: status.None{}, Metrics: of}
		if again, err := reporter.Report(t.Context(), sample(), patch.Result{State: patch.InForce, Reason: "AsExpected"}); err != nil || again != 0 {
			t.Fatal(again, err)
		}
		if count, err := testutil.GatherAndCount(registry, metrics.PatchInForce); err != nil || count != series {
			t.Errorf("%d series, %v, want %d", count, err, series)
		}
	}
}
