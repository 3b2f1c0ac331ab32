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
	"github.com/solonode/sno/patch/patchtest"
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

type reporterEnvironment struct {
	*testing.T
	reporter *status.Reporter
	sink     *fakeSink
	recorder *events.FakeRecorder
	clock    *clocktesting.FakePassiveClock
}

func newReporterEnvironment(t *testing.T) *reporterEnvironment {
	s := &reporterEnvironment{T: t, sink: &fakeSink{}, recorder: events.NewFakeRecorder(10), clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0))}
	s.reporter = &status.Reporter{Module: "sample", Prefix: "Sample", Object: "sample/one", Sink: s.sink, Events: s.recorder, Clock: s.clock}
	return s
}

// report must send the event ("" for none), publish the PatchFailing condition, and return the time.
func (s *reporterEnvironment) report(target *unstructured.Unstructured, state patch.State, reason, event, failing string, again time.Duration) {
	s.Helper()
	got, err := s.reporter.Report(s.Context(), target, patch.Result{State: state, Reason: reason, Message: "Because"})
	if !errors.Is(err, s.sink.err) {
		s.Fatal(err)
	}
	sent := ""
	select {
	case sent = <-s.recorder.Events:
	default:
	}
	if sent != event {
		s.Errorf("%s %s: event %q, want %q", state, reason, sent, event)
	}
	if s.sink.failing != failing {
		s.Errorf("%s %s: failing is %q, want %q", state, reason, s.sink.failing, failing)
	}
	if got != again {
		s.Errorf("%s %s: report again after %v, want %v", state, reason, got, again)
	}
}

func (s *reporterEnvironment) later(d time.Duration) { s.clock.SetTime(s.clock.Now().Add(d)) }

func sample() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Sample", "metadata": map[string]any{"name": "one"}}}
}

const fine = "False AsExpected"

func TestOneEventForATransition(t *testing.T) {
	s := newReporterEnvironment(t)
	s.report(sample(), patch.Progressing, "RollingOut", "Normal RollingOut Because", fine, 0)
	s.report(sample(), patch.Progressing, "RollingOut", "", fine, 0)
	s.report(sample(), patch.InForce, "AsExpected", "Normal AsExpected Because", fine, 0)
	s.report(sample(), patch.Blocked, "FieldOwnedByOther", "Warning FieldOwnedByOther Because", fine, 0)
	s.report(nil, patch.Waiting, "WaitingForObject", "", fine, 0)
	s.report(sample(), patch.Waiting, "WaitingForObject", "", fine, 0)
	s.report(sample(), patch.NotNeeded, "NotNeeded", "Normal NotNeeded Because", fine, 0)

	s = newReporterEnvironment(t)
	s.report(sample(), patch.NotNeeded, "NotNeeded", "", fine, 0)
	s.report(sample(), patch.InForce, "AsExpected", "Normal AsExpected Because", fine, 0)
}

func TestRestartIsNoTransition(t *testing.T) {
	target := sample()
	target.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "OtherPatchInForce", "status": "True", "reason": "AsExpected"},
		map[string]any{"type": "SamplePatchInForce", "status": "False", "reason": "Reverted"},
	}}
	s := newReporterEnvironment(t)
	s.report(target, patch.Reverted, "Reverted", "", fine, 2*time.Minute)
	s.report(target, patch.InForce, "AsExpected", "Normal AsExpected Because", fine, 0)
}

func TestFailingOnceItLasts(t *testing.T) {
	s := newReporterEnvironment(t)
	s.report(sample(), patch.Failed, "ApplyFailed", "Warning ApplyFailed Because", fine, 2*time.Minute)
	s.later(90 * time.Second)
	s.report(sample(), patch.Reverted, "Reverted", "Warning Reverted Because", fine, 30*time.Second)
	s.later(30 * time.Second)
	s.report(sample(), patch.Reverted, "Reverted", "", "True Reverted", 0)
	s.later(time.Hour)
	s.report(sample(), patch.Reverted, "Reverted", "", "True Reverted", 0)
	s.report(sample(), patch.Blocked, "FieldOwnedByOther", "Warning FieldOwnedByOther Because", fine, 0)
	s.report(sample(), patch.Failed, "ApplyFailed", "Warning ApplyFailed Because", fine, 2*time.Minute)
}

func TestFailingWithAClockThatIsSetBack(t *testing.T) {
	s := newReporterEnvironment(t)
	s.report(sample(), patch.Failed, "ApplyFailed", "Warning ApplyFailed Because", fine, 2*time.Minute)
	s.later(-time.Hour)
	s.report(sample(), patch.Failed, "ApplyFailed", "", fine, 2*time.Minute)
	s.later(2 * time.Minute)
	s.report(sample(), patch.Failed, "ApplyFailed", "", "True ApplyFailed", 0)
}

func TestReportAgainAtTheEarlierTime(t *testing.T) {
	s := newReporterEnvironment(t)
	s.sink.again = time.Minute
	s.report(sample(), patch.InForce, "AsExpected", "Normal AsExpected Because", fine, time.Minute)
	s.report(sample(), patch.Failed, "Invalid", "Warning Invalid Because", fine, time.Minute)
	s.sink.again = 10 * time.Minute
	s.report(sample(), patch.Failed, "Invalid", "", fine, 2*time.Minute)
	s.sink.err = errors.New("refused")
	s.report(sample(), patch.Failed, "Invalid", "", fine, 2*time.Minute)
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry)
	patchtest.NoError(t, err)
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
