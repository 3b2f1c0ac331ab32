// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"testing"
	"time"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
)

// longestOutage is how long an API server may be unavailable on one node (R-OPS-4).
const longestOutage = 2 * time.Minute

// TestOutageOfTwoMinutes stops the API server for this long. All six controllers keep their Leases, and everything
// converges afterwards. The matrix uses a few seconds.
func TestOutageOfTwoMinutes(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes; make proof runs it")
	}
	t.Parallel()
	times := cluster.SimulatedTimes()
	times.Outage = longestOutage
	target, err := Start(t.Context(), Options{Scenario: "none-sno", Variant: SNO, Progress: t.Output(), Times: times})
	if err != nil {
		t.Fatal(err)
	}
	const id = "SNO-TOP-011"
	run, err := runner.New(t.Context(), target, runner.Selection{Tiers: []catalogue.Tier{catalogue.Disruptive}, IDs: []string{id}})
	if err != nil {
		target.Stop()
		t.Fatal(err)
	}
	defer func() { _ = run.Close(t.Context()) }()
	if err := run.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	result, err := run.Result(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	leases := 0
	for _, e := range result.Evidence {
		if e.Field == "spec.holderIdentity" {
			leases++
		}
	}
	if result.Status != report.Passed || leases < 6 {
		t.Errorf("%s, %d leases: %s %+v", result.Status, leases, result.Reason, result.Evidence)
	}
	t.Log(result.Figures)
	if origin := run.Report().ControlPlaneOrigin; origin == "" {
		t.Error("the report lacks the origin of the control plane's programs")
	}
}
