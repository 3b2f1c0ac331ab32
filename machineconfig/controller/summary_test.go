package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/solonode/sno/patch"
)

func TestSummary(t *testing.T) {
	failure := errors.New("refused")
	fine := patch.Result{State: patch.InForce, Reason: "Fine"}
	idle := patch.Result{State: patch.NotNeeded, Reason: "Idle", After: time.Hour}
	busy := patch.Result{State: patch.Progressing, Reason: "Busy", After: time.Minute}
	broken := patch.Result{State: patch.Failed, Reason: "Broken", Err: failure}
	for name, test := range map[string]struct {
		said   []patch.Result
		reason string
		after  time.Duration
		err    error
	}{
		"nothing":                   {nil, "", 0, nil},
		"what is in force":          {[]patch.Result{idle, fine}, "Fine", time.Hour, nil},
		"nothing is needed":         {[]patch.Result{idle}, "Idle", time.Hour, nil},
		"the worst, at the soonest": {[]patch.Result{fine, broken, busy, idle}, "Broken", time.Minute, failure},
	} {
		got := summary(test.said)
		if got.Reason != test.reason || got.After != test.after || !errors.Is(got.Err, test.err) {
			t.Errorf("%s: %s, again in %s, %v", name, got, got.After, got.Err)
		}
	}
}
