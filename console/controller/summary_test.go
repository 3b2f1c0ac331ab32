package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/solonode/sno/patch"
)

// The worst is told, and nobody's wish for another look is lost.
func TestSummary(t *testing.T) {
	err := errors.New("try again")
	blocked := patch.Result{State: patch.Blocked, Reason: "B"}
	late := patch.Result{State: patch.Reverted, Reason: "R", After: time.Hour}
	soon := patch.Result{State: patch.Progressing, Reason: "P", After: time.Second}
	failed := patch.Result{State: patch.Failed, Reason: "F", Err: err}
	invalid := patch.Result{State: patch.Failed, Reason: "I"}
	for name, test := range map[string]struct {
		said  []patch.Result
		worst string
		after time.Duration
		err   error
	}{
		"nothing":          {nil, "", 0, nil},
		"one":              {[]patch.Result{blocked}, "B", 0, nil},
		"worst, earliest":  {[]patch.Result{soon, late, blocked}, "R", time.Second, nil},
		"worst is last":    {[]patch.Result{blocked, soon}, "B", time.Second, nil},
		"an error is kept": {[]patch.Result{invalid, failed}, "I", 0, err},
	} {
		got := summary(test.said)
		if got.Reason != test.worst || got.After != test.after || !errors.Is(got.Err, test.err) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
