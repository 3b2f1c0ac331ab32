// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"time"
)

var sampleScenarios = []struct{ name, description, controlPlane, infrastructure string }{
	{"none-sno", "Single node without a load balancer", "SingleReplica", "SingleReplica"},
	{"cloud-sno", "Single node in a cloud", "SingleReplica", "SingleReplica"},
	{"none-sno-day1-worker", "Single control-plane node installed with one worker, without a load balancer", "SingleReplica", "SingleReplica"},
	{"ha", "Three control-plane nodes and two workers in a cloud", "HighlyAvailable", "HighlyAvailable"},
	{"two-node", "Two schedulable control-plane nodes with fencing on bare metal", "DualReplica", "HighlyAvailable"},
}

var sampleModules = []struct {
	name, short string
	checks      int
}{{"topology", "TOP", 7}, {"ingress", "ING", 9}, {"etcdguard", "ETC", 6}, {"machineconfig", "MCO", 7}, {"console", "CON", 6}, {"auth", "AUT", 6}, {"approver", "APR", 4}}

// sampleReports returns a deterministic run on all scenarios. A baseline contains failures, waivers and inconclusive
// checks.
func sampleReports(variant string) []Report {
	started := time.Date(2026, time.March, 4, 5, 6, 7, 0, time.UTC)
	var reports []Report
	for i, s := range sampleScenarios {
		observed := Modes{ControlPlane: s.controlPlane, Infrastructure: s.infrastructure}
		report := Report{
			APIVersion: APIVersion, Kind: Kind, Scenario: s.name, Description: s.description, Variant: variant, Provider: "embedded", ControlPlaneOrigin: "built from source",
			Topology: Topology{Expected: observed, Observed: observed}, Tool: "sno-tests v0.1.0", Started: started, Seconds: 12.5,
		}
		report.Operators = []Operator{{Module: "ingress", Command: "ingress-operator --stock", StandIn: true}, {Module: "console", Command: "console-operator", StandIn: true}}
		if variant == "baseline" {
			report.Operators[1] = Operator{Module: "console", Command: "./console <operator> --verbosity=2", Exits: i % 2}
		}
		for m, module := range sampleModules {
			for n := range module.checks {
				report.Results = append(report.Results, sampleResult(variant, module.name, module.short, i, m, n))
			}
		}
		report.Count()
		reports = append(reports, report)
	}
	return reports
}

func sampleResult(variant, module, short string, scenario, column, number int) Result {
	r := Result{
		ID: fmt.Sprintf("SNO-%s-%03d", short, number+1), Title: "Pods run on the nodes of the topology and tolerate their taints",
		Module: module, Level: "core", Tier: []string{"static", "scheduled", "disruptive"}[number%3],
		Requirement: "R-EXAMPLE-5: the router should be pinned to the control-plane node on platform none, whatever workers are added afterwards",
		Seconds:     0.25 * float64(number+1),
	}
	deployment := "Deployment openshift-" + module + "/" + module + "-default"
	r.Evidence = []Evidence{
		{Object: deployment, Field: "spec.replicas", Want: "1", Got: "1", Held: true},
		{Object: deployment, Field: "spec.template.spec.nodeSelector", Want: "node-role.kubernetes.io/master", Got: "node-role.kubernetes.io/master", Held: true},
		{Object: deployment, Field: "status.conditions[Available].status", Want: "True", Got: "True", Held: true},
	}
	if number == 0 {
		for p := range 14 {
			r.Evidence = append(r.Evidence, Evidence{Object: fmt.Sprintf("Pod openshift-%s/%s-%02d", module, module, p), Field: "spec.nodeName", Want: "master-0", Got: "master-0", Held: true})
		}
	}
	r.Controls = []Control{
		{Name: "a second replica", Want: "fail", Detected: true},
		{Name: "a node selector for workers", Want: "fail", Detected: true},
		{Name: "an unrelated label", Want: "pass", Detected: true},
	}
	if number%3 == 2 {
		r.Figures = []Figure{{Name: "time without a serving pod", Value: 3.25, Unit: "s"}, {Name: "writes at rest", Value: 0, Unit: "requests"}}
	}
	switch sum := scenario*3 + column*5 + number*2; {
	case sum%7 == 0:
		r.Status, r.Reason = NotApplicable, "the control plane is highly available"
		r.Evidence, r.Controls, r.Figures = nil, nil, nil
	case number%5 == 4:
		r.Status, r.Reason = Skipped, "the disruptive tier was not selected"
		r.Evidence, r.Controls, r.Figures = nil, nil, nil
	case variant == "baseline" && (column == 1 || sum%5 == 1) && number < 5:
		r.Status, r.Controls = Failed, nil
		r.Evidence[1].Got, r.Evidence[1].Held = "node-role.kubernetes.io/worker", false
		if sum%11 == 1 {
			r.Waiver = &Waiver{ID: r.ID, Why: "fixed in the stock operator of the next release", Expires: "2027-01-01"}
		}
	case variant == "baseline" && sum%13 == 3:
		r.Status, r.Reason = Inconclusive, "controls with a wrong result: a node selector for workers"
		r.Controls[1].Detected, r.Controls[1].Got = false, "it passed"
	default:
		r.Status = Passed
	}
	return r
}

func smallReport() Report {
	report := sampleReports("baseline")[0]
	seen := map[mark]bool{}
	var results []Result
	for _, r := range report.Results {
		if !seen[r.mark()] && len(r.Evidence) < 10 {
			seen[r.mark()] = true
			results = append(results, r)
		}
	}
	waived := results[0]
	for _, r := range results {
		if r.Status == Failed && r.Waiver == nil {
			waived = r
		}
	}
	if !seen[markWaived] {
		waived.ID, waived.Waiver = "SNO-ING-099", &Waiver{ID: "SNO-ING-099", Scenario: "none-sno", Why: "fixed in the next release", Expires: "2027-01-01"}
		results = append(results, waived)
	}
	report.Results = results
	report.Count()
	return report
}
