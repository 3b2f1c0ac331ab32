package auth_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/auth"
)

var (
	start      = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	errRefused = errors.New("connection refused")
)

func probes(ok, failed int) []error {
	out := make([]error, ok, ok+failed)
	for range failed {
		out = append(out, errRefused)
	}
	return out
}

// TestWellKnownReadiness shows R-AUTH-2, with the two minutes of R-OPS-4.
func TestWellKnownReadiness(t *testing.T) {
	const m = time.Minute
	type verdict struct {
		Available, Progressing, Degraded bool
		Reason                           string
		After                            time.Duration
	}
	others := []configv1.TopologyMode{ha, arbiter, dual, external, empty, unknown}
	single := []configv1.TopologyMode{sr}
	healthy := verdict{true, false, false, "AsExpected", 0}
	for name, test := range map[string]struct {
		modes      []configv1.TopologyMode
		ok, failed int
		was        bool          // available before
		failing    time.Duration // since when something fails, and
		silent     time.Duration // since when nothing answers; negative: not known yet
		want       verdict
	}{
		"one of one":             {allModes, 1, 0, true, -1, -1, healthy},
		"one of one, at last":    {allModes, 1, 0, false, 9 * m, 9 * m, healthy},
		"three of three":         {allModes, 3, 0, true, -1, -1, healthy},
		"one of three, fresh":    {allModes, 1, 2, true, -1, -1, verdict{true, false, false, "AtLeastOneWellKnownAvailable", 5*m + time.Second}},
		"one of three, 5 min":    {allModes, 1, 2, true, 5 * m, -1, verdict{true, false, false, "AtLeastOneWellKnownAvailable", time.Second}},
		"one of three, longer":   {allModes, 1, 2, true, 5*m + 1, -1, verdict{true, false, true, "AtLeastOneWellKnownAvailable", 0}},
		"one of two, was away":   {allModes, 1, 1, false, 1 * m, 1 * m, verdict{true, false, false, "AtLeastOneWellKnownAvailable", 4*m + time.Second}},
		"single, just gone":      {single, 0, 1, true, -1, -1, verdict{true, true, false, "APIServerRollingOut", 2*m + time.Second}},
		"single, 2 min":          {single, 0, 1, true, 2 * m, 2 * m, verdict{true, true, false, "APIServerRollingOut", time.Second}},
		"single, longer":         {single, 0, 1, true, 2*m + 1, 2*m + 1, verdict{false, false, false, "WellKnownNotReady", 3*m + time.Second - 1}},
		"single, 5 min":          {single, 0, 1, false, 5 * m, 5 * m, verdict{false, false, false, "WellKnownNotReady", time.Second}},
		"single, very long":      {single, 0, 1, false, 6 * m, 6 * m, verdict{false, false, true, "WellKnownNotReady", 0}},
		"single, installing":     {single, 0, 1, false, -1, -1, verdict{false, true, false, "APIServerRollingOut", 2*m + time.Second}},
		"single, off the list":   {single, 0, 0, true, 1 * m, 1 * m, verdict{true, true, false, "APIServerRollingOut", 1*m + time.Second}},
		"single, none for long":  {single, 0, 0, true, 3 * m, 3 * m, verdict{false, false, false, "NoAPIServer", 2*m + time.Second}},
		"single, stale endpoint": {single, 0, 2, true, 60 * m, 1 * m, verdict{true, true, false, "APIServerRollingOut", 1*m + time.Second}},
		"none of one":            {others, 0, 1, true, -1, -1, verdict{false, false, false, "WellKnownNotReady", 5*m + time.Second}},
		"none of three":          {others, 0, 3, true, -1, -1, verdict{false, false, false, "WellKnownNotReady", 5*m + time.Second}},
		"none of three, long":    {others, 0, 3, false, 6 * m, 6 * m, verdict{false, false, true, "WellKnownNotReady", 0}},
		"none after some, long":  {others, 0, 3, true, 60 * m, 1 * m, verdict{false, false, false, "WellKnownNotReady", 4*m + time.Second}},
		"none on the list":       {others, 0, 0, true, -1, -1, verdict{false, false, false, "NoAPIServer", 5*m + time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			ago := func(d time.Duration) time.Time {
				if d < 0 {
					return time.Time{}
				}
				return start.Add(-d)
			}
			before := auth.WellKnownState{Available: test.was, FailingSince: ago(test.failing), SilentSince: ago(test.silent)}
			known := func(at time.Time) time.Time {
				if at.IsZero() {
					return start
				}
				return at
			}
			state := auth.WellKnownState{Available: test.want.Available}
			if test.failed > 0 || test.ok == 0 {
				state.FailingSince = known(before.FailingSince)
			}
			if test.ok == 0 {
				state.SilentSince = known(before.SilentSince)
			}
			for _, mode := range test.modes {
				got := auth.WellKnownReadiness(mode, probes(test.ok, test.failed), before, start)
				if diff := cmp.Diff(test.want, verdict{got.Available, got.Progressing, got.Degraded, got.Reason, got.After}); diff != "" {
					t.Errorf("%q (-want +got):\n%s", mode, diff)
				}
				if diff := cmp.Diff(state, got.State); diff != "" {
					t.Errorf("%q, state (-want +got):\n%s", mode, diff)
				}
				if got.Message == "" {
					t.Errorf("%q: no message", mode)
				}
			}
		})
	}
}

// Every combination of what the readiness depends on, against the rule in other words.
func TestWellKnownReadinessTable(t *testing.T) {
	const m = time.Minute
	ages := []time.Duration{-1, 0, 2 * m, 2*m + 1, 5 * m, 5*m + 1, 60 * m}
	var tried int
	for _, mode := range allModes {
		for ok := range 3 {
			for failed := range 3 {
				for _, was := range []bool{true, false} {
					for _, failing := range ages {
						for _, silent := range ages {
							at := func(age time.Duration) time.Time {
								if age < 0 {
									return time.Time{}
								}
								return start.Add(-age)
							}
							got := auth.WellKnownReadiness(mode, probes(ok, failed), auth.WellKnownState{Available: was, FailingSince: at(failing), SilentSince: at(silent)}, start)

							all, none := ok > 0 && failed == 0, ok == 0
							grace := none && mode == sr && silent <= 2*m
							// What counts is the time of what fails now: of the partial failure, or of the whole one.
							age := failing
							if none {
								age = silent
							}
							want := [3]bool{!none || (grace && was), grace, !all && !grace && age > 5*m}
							if is := [3]bool{got.Available, got.Progressing, got.Degraded}; is != want {
								t.Errorf("%q, %d serve, %d do not, was %v, failing for %s, silent for %s: available, progressing, degraded %v, want %v",
									mode, ok, failed, was, failing, silent, is, want)
							}
							tried++
						}
					}
				}
			}
		}
	}
	if tried != 7*3*3*2*7*7 {
		t.Errorf("%d combinations were tried", tried)
	}
}

// step is one look, some seconds after the start.
type step struct {
	at         int
	ok, failed int
	says       string
}

func look(t *testing.T, mode configv1.TopologyMode, steps []step) {
	t.Helper()
	var state auth.WellKnownState
	for _, s := range steps {
		r := auth.WellKnownReadiness(mode, probes(s.ok, s.failed), state, start.Add(time.Duration(s.at)*time.Second))
		state = r.State
		says := ""
		if r.Available {
			says += "A"
		}
		if r.Progressing {
			says += "P"
		}
		if r.Degraded {
			says += "D"
		}
		if says != s.says {
			t.Errorf("%q after %d s: %q (%s), want %q", mode, s.at, says, r.Reason, s.says)
		}
	}
}

// A = Available, P = Progressing, D = Degraded.
func TestWellKnownOverTime(t *testing.T) {
	t.Run("install, then a rollout of the only API server, then another", func(t *testing.T) {
		look(t, sr, []step{
			{0, 0, 1, "P"}, {60, 0, 1, "P"}, {200, 0, 1, ""}, {400, 0, 1, "D"}, {410, 1, 0, "A"},
			{1000, 0, 1, "AP"}, {1060, 0, 0, "AP"}, {1119, 0, 1, "AP"}, {1125, 1, 0, "A"},
			{1130, 0, 1, "AP"}, {1250, 0, 1, "AP"}, {1251, 0, 1, ""}, {1252, 0, 1, ""}, {1431, 0, 1, "D"}, {1440, 1, 0, "A"},
		})
	})
	t.Run("a rolling update of three API servers", func(t *testing.T) {
		look(t, ha, []step{{0, 3, 0, "A"}, {10, 2, 1, "A"}, {200, 2, 1, "A"}, {311, 2, 1, "AD"}, {312, 3, 0, "A"}, {313, 0, 3, ""}, {314, 1, 2, "A"}})
	})
	t.Run("a clock that goes back by an hour puts the limit off once", func(t *testing.T) {
		look(t, sr, []step{
			{0, 1, 0, "A"}, {10, 0, 1, "AP"}, {-3600, 0, 1, "AP"}, {-3500, 0, 1, "AP"}, {-3479, 0, 1, ""}, {-3299, 0, 1, "D"}, {-3200, 1, 0, "A"},
		})
	})
	t.Run("a clock that goes back does not bring an outage back into its grace as available", func(t *testing.T) {
		look(t, sr, []step{{0, 1, 0, "A"}, {10, 0, 1, "AP"}, {200, 0, 1, ""}, {5, 0, 1, "P"}})
	})
}

func TestReadinessConditions(t *testing.T) {
	condition := func(kind string, status operatorv1.ConditionStatus, reason, message string) operatorv1.OperatorCondition {
		return operatorv1.OperatorCondition{Type: "WellKnown" + kind, Status: status, Reason: reason, Message: message}
	}
	for name, test := range map[string]struct {
		readiness auth.Readiness
		want      []operatorv1.OperatorCondition
	}{
		"healthy": {auth.Readiness{Available: true, Reason: "AsExpected", Message: "Fine"}, []operatorv1.OperatorCondition{
			condition("Available", "True", "AsExpected", "Fine"),
			condition("Progressing", "False", "AsExpected", "Nothing is in progress"),
			condition("Degraded", "False", "AsExpected", "Nothing is failing for long"),
		}},
		"rolling out": {auth.Readiness{Available: true, Progressing: true, Reason: "R", Message: "M"}, []operatorv1.OperatorCondition{
			condition("Available", "True", "R", "M"), condition("Progressing", "True", "R", "M"),
			condition("Degraded", "False", "AsExpected", "Nothing is failing for long"),
		}},
		"outage": {auth.Readiness{Degraded: true, Reason: "R", Message: "M"}, []operatorv1.OperatorCondition{
			condition("Available", "False", "R", "M"), condition("Progressing", "False", "AsExpected", "Nothing is in progress"),
			condition("Degraded", "True", "R", "M"),
		}},
	} {
		if diff := cmp.Diff(test.want, test.readiness.Conditions("WellKnown")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
