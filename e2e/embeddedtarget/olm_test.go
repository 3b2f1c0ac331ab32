// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"slices"
	"testing"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
	"github.com/solonode/sno/e2e/framework"
)

// TestOLMOperatorConforms runs the checks that concern every workload while the operator of OLM runs, and requires that
// they have evaluated its Deployment and its Lease.
func TestOLMOperatorConforms(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes; make proof runs it")
	}
	t.Parallel()
	target, err := Start(t.Context(), Options{Scenario: "none-sno", Variant: Vendored, Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{"SNO-TOP-003", "SNO-TOP-004", "SNO-TOP-007", "SNO-TOP-011"}
	run, err := runner.New(t.Context(), target, runner.Selection{Tiers: catalogue.Tiers(), IDs: ids})
	if err != nil {
		target.Stop()
		t.Fatal(err)
	}
	defer func() { _ = run.Close(t.Context()) }()
	if err := run.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{
		"SNO-TOP-003": "Deployment " + framework.OLMNamespace + "/" + framework.OLMOperand,
		"SNO-TOP-011": "Lease " + framework.OLMNamespace + "/" + framework.OLMLease,
	}
	for _, id := range ids {
		result, err := run.Result(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if result.Status != report.Passed {
			t.Errorf("%s is %s: %s %+v", id, result.Status, result.Reason, result.Evidence)
		}
		if object := seen[id]; object != "" && !slices.ContainsFunc(result.Evidence, func(e report.Evidence) bool { return e.Object == object }) {
			t.Errorf("%s did not evaluate %s: %+v", id, object, result.Evidence)
		}
	}
}
