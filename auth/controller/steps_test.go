package controller

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/solonode/sno/patch"
)

func TestTogether(t *testing.T) {
	is := func(state patch.State, reason string) patch.Result { return patch.Result{State: state, Reason: reason} }
	later := func(r patch.Result, after time.Duration) patch.Result {
		r.After = after
		return r
	}
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		results []patch.Result
		reason  string
		after   time.Duration
		err     error
	}{
		"all in force":             {[]patch.Result{is(patch.InForce, "a"), is(patch.InForce, "b"), is(patch.InForce, "c")}, "a", 0, nil},
		"one not needed":           {[]patch.Result{is(patch.NotNeeded, "a"), is(patch.InForce, "b"), is(patch.InForce, "c")}, "b", 0, nil},
		"one in force":             {[]patch.Result{is(patch.NotNeeded, "a"), is(patch.NotNeeded, "b"), is(patch.InForce, "c")}, "c", 0, nil},
		"none needed":              {[]patch.Result{is(patch.NotNeeded, "a"), is(patch.NotNeeded, "b"), is(patch.NotNeeded, "c")}, "a", 0, nil},
		"opted out of one":         {[]patch.Result{is(patch.NotNeeded, "a"), is(patch.OptedOut, "b"), is(patch.InForce, "c")}, "b", 0, nil},
		"the worst":                {[]patch.Result{is(patch.Blocked, "a"), is(patch.Progressing, "b"), is(patch.Failed, "c")}, "c", 0, nil},
		"another asks for a look":  {[]patch.Result{is(patch.Blocked, "a"), later(is(patch.Progressing, "b"), time.Second), is(patch.InForce, "c")}, "a", time.Second, nil},
		"the soonest of two":       {[]patch.Result{later(is(patch.Failed, "a"), time.Minute), later(is(patch.Reverted, "b"), time.Second)}, "a", time.Second, nil},
		"the soonest of two, last": {[]patch.Result{later(is(patch.Progressing, "a"), time.Second), later(is(patch.Failed, "b"), time.Minute)}, "b", time.Second, nil},
		"one failed":               {[]patch.Result{{State: patch.Failed, Reason: "a", Err: broken}, is(patch.Failed, "b")}, "a", 0, broken},
		"a later one failed":       {[]patch.Result{is(patch.Failed, "a"), {State: patch.Failed, Reason: "b", Err: broken}}, "a", 0, broken},
	} {
		got := together(test.results...)
		if got.Reason != test.reason || got.After != test.after || !errors.Is(got.Err, test.err) || (got.Err == nil) != (test.err == nil) {
			t.Errorf("%s: %+v; want %s, %s, %v", name, got, test.reason, test.after, test.err)
		}
	}
}

// Both Deployments have namesakes in other namespaces, so messages and log lines name the namespace too.
func TestDeploymentWords(t *testing.T) {
	words := deploymentWords("openshift-oauth-apiserver", "apiserver")
	for _, text := range []string{words.Subject, words.WouldApply} {
		if !strings.Contains(text, "he Deployment openshift-oauth-apiserver/apiserver") {
			t.Errorf("%q does not name the Deployment by its namespace", text)
		}
	}
}
