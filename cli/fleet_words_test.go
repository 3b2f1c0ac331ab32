// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/cli/plan"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/fleet/feedback"
	"github.com/solonode/sno/fleet/overview"
	"github.com/solonode/sno/patch"
)

// Clusters on which the same happens have equal changes, whatever their nodes and what a module remembers for itself.
func TestChangesOf(t *testing.T) {
	cluster := func(node, uid string) []plan.Module {
		return []plan.Module{
			{Module: "machineconfig", Rows: []plan.Row{{Object: "node/" + node, Field: ".metadata.annotations.a", Desired: `"x"`, Verdict: plan.Set, Owner: node, Live: node}}},
			{Module: "approver", Rows: []plan.Row{
				{Object: "deployment.apps/a", Field: `.spec.template.metadata.annotations["` + patch.Domain + `/approver-edit"]`, Desired: uid, Verdict: plan.Set},
				{Object: "deployment.apps/a", Field: ".spec.replicas", Verdict: plan.InForce},
				{Object: "-", Field: "-", Verdict: "not needed", Why: "Nothing to do"},
				{Object: "deployment.apps/b", Field: ".spec.x", Desired: strings.Repeat("y", 200), Verdict: plan.Blocked, Why: "Owned by a person"},
			}},
		}
	}
	one, err := changesOf(cluster("node-a", "1"))
	two, err2 := changesOf(cluster("node-b", "2"))
	if diff := cmp.Diff(one, two); errors.Join(err, err2) != nil || diff != "" {
		t.Fatalf("%v, %v\n%s", err, err2, diff)
	}
	var got []string
	for _, c := range one {
		got = append(got, fmt.Sprint(c.Object, " ", c.Field, " ", c.Desired[:3], " ", c.Verdict, " ", c.Why))
	}
	want := []string{
		`node/* .metadata.annotations.a "x" set `, `deployment.apps/a .spec.template.metadata.annotations["sno.solonode.github.io/approver-edit"] (bo set `,
		"deployment.apps/b .spec.x yyy blocked Owned by a person",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = changesOf([]plan.Module{{Module: "auth", Message: "Forbidden", Result: patch.Result{State: patch.Failed}}})
	if !errors.Is(err, errPlanFailed) || !strings.Contains(err.Error(), "auth: the module has no plan: Forbidden") {
		t.Errorf("got %v", err)
	}
}

// What a cluster has not reported is skipped and never passed.
func TestCheckRow(t *testing.T) {
	modules := []feedback.State{{Module: "auth", Settled: true, Reason: "AsExpected"}, {Module: "ingress", Reason: "FieldOwnedByOther", Message: "Owned"}}
	for name, c := range map[string]struct {
		row  overview.Row
		want map[string]report.Status
	}{
		"single node": {overview.Row{ControlPlane: "SingleReplica", Infrastructure: "SingleReplica", Modules: modules}, map[string]report.Status{
			"SNO-TOP-001": report.Passed, "SNO-ING-001": report.Skipped, "SNO-AUT-004": report.NotApplicable, "FLEET-AUTH": report.Passed, "FLEET-INGRESS": report.Failed,
		}},
		"unknown topology": {overview.Row{ControlPlane: "Twin", Infrastructure: "SingleReplica"}, map[string]report.Status{"SNO-TOP-001": report.Failed}},
		"nothing reported": {overview.Row{}, map[string]report.Status{"SNO-TOP-001": report.Skipped, "SNO-AUT-001": report.Skipped}},
		"away": {overview.Row{State: overview.Away, ControlPlane: "SingleReplica", Infrastructure: "SingleReplica", Modules: modules}, map[string]report.Status{
			"SNO-TOP-001": report.Inconclusive, "SNO-ING-001": report.Skipped, "FLEET-AUTH": report.Inconclusive, "FLEET-INGRESS": report.Inconclusive,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := checkRow(c.row, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]report.Status{}
			for _, result := range r.Results {
				if _, is := c.want[result.ID]; is {
					got[result.ID] = result.Status
				} else if result.Status == report.Passed {
					t.Errorf("%s passed", result.ID)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
