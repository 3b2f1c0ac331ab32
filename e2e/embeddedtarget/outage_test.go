// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"testing"
	"time"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/report"
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
	times := checks.SimulatedTimes()
	times.Outage = longestOutage
	target, err := Start(t.Context(), Options{Scenario: "none-sno", Variant: SNO, Progress: t.Output(), Times: times})
	if err != nil {
		t.Fatal(err)
	}
	const id = "SNO-TOP-011"
	runner, err := checks.NewRunner(t.Context(), target, checks.Selection{Tiers: []checks.Tier{checks.Disruptive}, IDs: []string{id}})
	if err != nil {
		target.Stop()
		t.Fatal(err)
	}
	defer func() { _ = runner.Close(t.Context()) }()
	if err := runner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	result, err := runner.Result(t.Context(), id)
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
	if origin := runner.Report().ControlPlaneOrigin; origin == "" {
		t.Error("the report lacks the origin of the control plane's programs")
	}
}
