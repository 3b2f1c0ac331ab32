// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/fleet/overview"
)

func newFleetCheck(p *program) *cobra.Command {
	f := &fleet{program: p}
	var junit, page string
	command := newCommand("check [CLUSTER...]", "Check every cluster by what it has reported", `
Run the static checks of the conformance suite on what the clusters have reported, and check that every module is settled there.

Clusters report the topologies and the conditions of the modules, so most checks of the suite are skipped, with the reason: what they read
are Nodes, Pods and Deployments. "sno-tests run" on a cluster runs all of them. Of a cluster that is away every result is inconclusive.

Exit codes: 0 if nothing failed, 5 if checks are inconclusive, 6 if some failed, 1 for an error.`, `
		# For a CI system, and for a browser
		kubectl sno fleet check --junit fleet.xml --html fleet.html`, p.bindOutput, f.bindSelector)
	command.Flags().StringVar(&junit, "junit", "", "Also write JUnit to this file, a suite for each cluster.")
	command.Flags().StringVar(&page, "html", "", "Also write a page to this file.")
	command.RunE = func(command *cobra.Command, names []string) error {
		t, err := f.table(command, true, names)
		if err != nil {
			return err
		}
		var reports []report.Report
		for _, r := range t {
			one, err := checkRow(r, time.Now())
			if err != nil {
				return err
			}
			reports = append(reports, one)
		}
		for name, write := range map[string]func(*os.File) error{
			junit: func(file *os.File) error { return report.WriteJUnit(file, reports...) },
			page: func(file *os.File) error {
				return report.WriteHTML(file, report.HTML{Title: "Conformance of a fleet", Reports: reports})
			},
		} {
			if name == "" {
				continue
			}
			if err := writeFile(name, write); err != nil {
				return err
			}
		}
		out, code := checkAnswer(reports)
		if err := p.print(out); err != nil {
			return err
		}
		return exitOf(code)
	}
	return command
}

// checkRow returns the report of a cluster.
func checkRow(r overview.Row, now time.Time) (report.Report, error) {
	modes := report.Modes{ControlPlane: r.ControlPlane, Infrastructure: r.Infrastructure}
	out := report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, Scenario: r.Cluster, Description: r.Message, Provider: "existing",
		Topology: report.Topology{Observed: modes}, Tool: "kubectl sno " + releaseVersion(), Started: now,
	}
	state := &catalogue.State{Infrastructure: &configv1.Infrastructure{}}
	state.Infrastructure.Status.ControlPlaneTopology = configv1.TopologyMode(r.ControlPlane)
	state.Infrastructure.Status.InfrastructureTopology = configv1.TopologyMode(r.Infrastructure)
	for _, check := range catalogue.All() {
		if check.Tier != catalogue.Static {
			continue
		}
		result := check.Result()
		switch {
		case r.ControlPlane == "":
			result.Reason = "the cluster has not reported its topology"
		case len(check.Topologies) > 0 && !slices.Contains(check.Topologies, r.ControlPlane):
			result.Status, result.Reason = report.NotApplicable, "controlPlaneTopology is "+r.ControlPlane
		case check.ID == knownTopologies && r.Infrastructure != "":
			evidence, err := check.Run(&catalogue.Input{State: state})
			if err != nil {
				return out, fmt.Errorf("%s on %s: %w", check.ID, r.Cluster, err)
			}
			result.Evidence, result.Status = evidence, report.Passed
			if report.FirstFailure(evidence) != "" {
				result.Status = report.Failed
			}
		default:
			result.Reason = "clusters do not report the objects that the check reads; sno-tests run on the cluster reads them"
		}
		out.Results = append(out.Results, result)
	}
	for _, m := range r.Modules {
		result := report.Result{
			ID: "FLEET-" + strings.ToUpper(m.Module), Title: "The module reports that it is settled", Module: m.Module, Level: string(catalogue.Core),
			Tier: string(catalogue.Static), Requirement: "the patch is in force and its operand follows, or nothing is to do", Status: report.Failed, Reason: m.Message,
		}
		if m.Settled {
			result.Status = report.Passed
		}
		result.Evidence = []report.Evidence{{Object: "module " + m.Module, Field: "condition", Want: "settled", Got: m.Reason, Held: m.Settled}}
		out.Results = append(out.Results, result)
	}
	for i := range out.Results {
		if done := out.Results[i].Status; r.State == overview.Away && (done == report.Passed || done == report.Failed) {
			out.Results[i].Status, out.Results[i].Reason = report.Inconclusive, "the cluster is away; this is what it reported before"
		}
	}
	out.Count()
	return out, nil
}

// knownTopologies is the check of the suite that reads nothing but what clusters report.
const knownTopologies = "SNO-TOP-001"

func checkAnswer(reports []report.Report) (answer, int) {
	t := table("CLUSTER", "PASSED", "FAILED", "INCONCLUSIVE", "NOT APPLICABLE", "SKIPPED", "FIRST FAILURE")
	var names []string
	code := overview.ExitSettled
	for _, r := range reports {
		first := "-"
		for _, result := range r.Results {
			if message := result.FailureMessage(); message != "" && first == "-" {
				first = result.ID + ": " + message
			}
		}
		switch {
		case r.Counts[report.Failed] > 0:
			code = overview.ExitNotInForce
		case r.Counts[report.Inconclusive] > 0:
			code = max(code, overview.ExitAway)
		}
		names = append(names, "managedcluster/"+r.Scenario)
		row(t, r.Scenario, r.Counts[report.Passed], r.Counts[report.Failed], r.Counts[report.Inconclusive], r.Counts[report.NotApplicable], r.Counts[report.Skipped], first)
	}
	return answer{kind: "FleetCheck", value: map[string]any{"reports": reports}, names: names, table: t}, code
}
