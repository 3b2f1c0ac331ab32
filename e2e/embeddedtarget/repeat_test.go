// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"flag"
	"testing"
	"time"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
)

var runs = flag.Int("runs", 3, "how often TestRepeated runs the scheduled tier")

// TestRepeated repeats the static and the scheduled tier on one correct cluster. Every result has to be the same. To
// measure the suite's flakes: `go test ./embeddedtarget -run Repeated -runs 100 -timeout 2h`.
func TestRepeated(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster; make proof runs it")
	}
	ctx := t.Context()
	target, err := Start(ctx, Options{Scenario: "none-sno-day1-worker", Variant: SNO, Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Stop()
	target.Stop = nil // used by every run
	first, began := map[string]report.Status{}, time.Now()
	for run := range *runs {
		for id, result := range once(t, target) {
			if run == 0 {
				first[id] = result.Status
			}
			if result.Status != first[id] || result.Status == report.Failed || result.Status == report.Inconclusive {
				t.Errorf("run %d: %s is %s, was %s: %s %+v %+v", run+1, id, result.Status, first[id], result.Reason, result.Evidence, result.Controls)
			}
		}
		t.Logf("%d of %d runs after %s", run+1, *runs, time.Since(began).Round(time.Second))
	}
}

func once(t *testing.T, target cluster.Target) map[string]report.Result {
	t.Helper()
	run, err := runner.New(t.Context(), target, runner.Selection{Tiers: []catalogue.Tier{catalogue.Static, catalogue.Scheduled}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := run.Close(t.Context()); err != nil {
			t.Errorf("a run leaves something behind: %v", err)
		}
	}()
	if err := run.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	results := map[string]report.Result{}
	for _, check := range catalogue.All() {
		if results[check.ID], err = run.Result(t.Context(), check.ID); err != nil {
			t.Fatal(err)
		}
	}
	return results
}
