// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/topology/topologytest"
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

// R-AUTH-2, and the two minutes of R-OPS-4: all combinations of the inputs, compared with a rule.
func TestWellKnownReadiness(t *testing.T) {
	const m = time.Minute
	ages := []time.Duration{-1, 0, 2 * m, 2*m + 1, 5 * m, 5*m + 1, 60 * m} // -1: zero
	at := func(age time.Duration) time.Time {
		if age < 0 {
			return time.Time{}
		}
		return start.Add(-age)
	}
	after := func(age, limit time.Duration) time.Duration {
		if age > limit {
			return 0
		}
		return limit - max(age, 0) + time.Second
	}
	for bits := range 7 * 3 * 3 * 2 * 7 * 7 {
		pick := func(n int) int { i := bits % n; bits /= n; return i }
		mode, ok, failed, was, failing, silent := topologytest.AllModes[pick(7)], pick(3), pick(3), pick(2) == 1, ages[pick(7)], ages[pick(7)]
		before := auth.WellKnownState{Available: was, FailingSince: at(failing), SilentSince: at(silent)}
		got := auth.WellKnownReadiness(mode, probes(ok, failed), before, start)

		since := func(age time.Duration) time.Time { return start.Add(-max(age, 0)) }
		var want auth.Readiness
		switch none := ok == 0; {
		case !none && failed == 0:
			want = auth.Readiness{Available: true, Reason: "AsExpected", State: auth.WellKnownState{Available: true}}
		case !none:
			want = auth.Readiness{Available: true, Degraded: failing > 5*m, Reason: "AtLeastOneWellKnownAvailable", After: after(failing, 5*m),
				State: auth.WellKnownState{Available: true, FailingSince: since(failing)}}
		case mode == topologytest.SR && silent <= 2*m:
			want = auth.Readiness{Available: was, Progressing: true, Reason: "APIServerRollingOut", After: after(silent, 2*m),
				State: auth.WellKnownState{Available: was, FailingSince: since(failing), SilentSince: since(silent)}}
		default:
			want = auth.Readiness{Degraded: true, Reason: "WellKnownNotReady",
				State: auth.WellKnownState{FailingSince: since(failing), SilentSince: since(silent)}}
			if mode == topologytest.SR {
				want.Degraded, want.After = silent > 5*m, after(silent, 5*m)
			}
			if failed == 0 {
				want.Reason = "NoAPIServer"
			}
		}
		if got.Message == "" {
			t.Errorf("%+v: no message", got)
		}
		got.Message = ""
		if got != want {
			t.Errorf("%q, %d serve, %d do not, was %v, failing for %s, silent for %s:\n%+v, want\n%+v", mode, ok, failed, was, failing, silent, got, want)
		}
	}
}

// A = Available, P = Progressing, D = Degraded.
func TestWellKnownOverTime(t *testing.T) {
	type step struct {
		at         int // seconds after the start
		ok, failed int
		want       string
	}
	for name, test := range map[string]struct {
		mode  configv1.TopologyMode
		steps []step
	}{
		"installation, then two rollouts of the only API server": {topologytest.SR, []step{
			{0, 0, 1, "P"}, {60, 0, 1, "P"}, {200, 0, 1, ""}, {400, 0, 1, "D"}, {410, 1, 0, "A"},
			{1000, 0, 1, "AP"}, {1060, 0, 0, "AP"}, {1119, 0, 1, "AP"}, {1125, 1, 0, "A"},
			{1130, 0, 1, "AP"}, {1250, 0, 1, "AP"}, {1251, 0, 1, ""}, {1252, 0, 1, ""}, {1431, 0, 1, "D"}, {1440, 1, 0, "A"},
		}},
		"a rolling update of three API servers": {topologytest.HA, []step{
			{0, 3, 0, "A"}, {10, 2, 1, "A"}, {200, 2, 1, "A"}, {311, 2, 1, "AD"}, {312, 3, 0, "A"}, {313, 0, 3, "D"}, {314, 1, 2, "A"},
		}},
		"a clock that is set back by an hour delays the limit once": {topologytest.SR, []step{
			{0, 1, 0, "A"}, {10, 0, 1, "AP"}, {-3600, 0, 1, "AP"}, {-3500, 0, 1, "AP"}, {-3479, 0, 1, ""}, {-3299, 0, 1, "D"}, {-3200, 1, 0, "A"},
		}},
		"a clock that is set back does not make an outage available": {topologytest.SR, []step{
			{0, 1, 0, "A"}, {10, 0, 1, "AP"}, {200, 0, 1, ""}, {5, 0, 1, "P"},
		}},
	} {
		var state auth.WellKnownState
		for _, s := range test.steps {
			r := auth.WellKnownReadiness(test.mode, probes(s.ok, s.failed), state, start.Add(time.Duration(s.at)*time.Second))
			state = r.State
			got := ""
			for i, is := range []bool{r.Available, r.Progressing, r.Degraded} {
				if is {
					got += "APD"[i : i+1]
				}
			}
			if got != s.want {
				t.Errorf("%s, after %d s: %q (%s), want %q", name, s.at, got, r.Reason, s.want)
			}
		}
	}
}

func TestReadinessConditions(t *testing.T) {
	const notProgressing = "WellKnownProgressing False AsExpected Nothing is in progress"
	const notDegraded = "WellKnownDegraded False AsExpected Nothing is failing for long"
	for readiness, want := range map[auth.Readiness][]string{
		{Available: true}:                    {"WellKnownAvailable True R M", notProgressing, notDegraded},
		{Available: true, Progressing: true}: {"WellKnownAvailable True R M", "WellKnownProgressing True R M", notDegraded},
		{Degraded: true}:                     {"WellKnownAvailable False R M", notProgressing, "WellKnownDegraded True R M"},
	} {
		readiness.Reason, readiness.Message = "R", "M"
		var got []string
		for _, c := range readiness.Conditions("WellKnown") {
			got = append(got, fmt.Sprintf("%s %s %s %s", c.Type, c.Status, c.Reason, c.Message))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", readiness, diff)
		}
	}
}
