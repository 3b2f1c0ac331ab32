// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// APIVersion and Kind identify reports.
const (
	APIVersion = "conformance.sno.solonode.github.io/v1alpha1"
	Kind       = "SingleNodeConformanceReport"
)

// Status is the result of a check. Every report contains one for every check of the catalogue.
type Status string

const (
	// Passed: the expectation held, and all controls had the expected result.
	Passed Status = "passed"
	// Failed: the expectation did not hold, or the cluster could not be read.
	Failed Status = "failed"
	// Inconclusive: a control had a wrong result, or the cluster, an interruption or an idle operator prevented the check.
	Inconclusive Status = "inconclusive"
	// NotApplicable: the check does not apply to this kind of cluster.
	NotApplicable Status = "notApplicable"
	// Skipped: the check was not selected, or something that it needs is missing.
	Skipped Status = "skipped"
)

// Statuses returns all statuses in the order of tables.
func Statuses() []Status { return []Status{Passed, Failed, Inconclusive, NotApplicable, Skipped} }

// Report contains the results of one run on one cluster.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Scenario is the name of the cluster.
	Scenario    string `json:"scenario"`
	Description string `json:"description,omitempty"`
	// Variant is "sno", "vendored", "baseline", or empty for a cluster that was not set up for the run.
	Variant string `json:"variant,omitempty"`
	// Provider is "embedded" or "existing".
	Provider string `json:"provider"`
	// ControlPlaneOrigin is where the programs of an embedded control plane are from: "built from source", "given
	// folder", or hosts and SHA-256.
	ControlPlaneOrigin string `json:"controlPlaneOrigin,omitempty"`
	// Operators are the host operators of a cluster that was set up for the run, in the order of the modules.
	Operators []Operator `json:"operators,omitempty"`
	Topology  Topology   `json:"topology"`
	Tool      string     `json:"tool,omitempty"`
	Started   time.Time  `json:"started"`
	Seconds   float64    `json:"seconds"`
	// Counts contains every status.
	Counts  map[Status]int `json:"counts"`
	Results []Result       `json:"results"`
	// Measurements of experiments on the same cluster.
	Measurements []Measurement `json:"measurements,omitempty"`
}

// Operator is a host operator: it owns the operands of a module, and may vendor it.
type Operator struct {
	Module string `json:"module"`
	// Command is its command line, without the connection to the cluster for a stand-in.
	Command string `json:"command"`
	// StandIn means that it is an operator of this repository that stands in for that of OpenShift. Otherwise it was
	// given for the run.
	StandIn bool `json:"standIn"`
	// Exits is how often it ended by itself and was started again.
	Exits int `json:"exits,omitempty"`
}

// Measurement is the result of an experiment, as text with units.
type Measurement struct {
	What     string `json:"what"`
	Measured string `json:"measured"`
	Bound    string `json:"bound,omitempty"`
	// Compared is the value of alternatives, or without the modules.
	Compared string `json:"compared,omitempty"`
	// Held reports whether the measurement is within the bound.
	Held bool `json:"held"`
}

// Topology contains the topologies of the Infrastructure object: those of the installation, if known, and those that
// were read.
type Topology struct {
	Expected Modes `json:"expected,omitzero"`
	Observed Modes `json:"observed"`
}

// Modes are the topologies of infrastructures.config.openshift.io/cluster.
type Modes struct {
	ControlPlane   string `json:"controlPlane,omitempty"`
	Infrastructure string `json:"infrastructure,omitempty"`
}

// Result is that of one check.
type Result struct {
	ID          string `json:"id"`
	Title       string `json:"title"`
	Module      string `json:"module"`
	Level       string `json:"level"`
	Tier        string `json:"tier"`
	Requirement string `json:"requirement"`
	Status      Status `json:"status"`
	// Reason is why a check is not applicable, skipped, inconclusive, or could not read the cluster. It contains
	// nothing that changes from run to run.
	Reason   string     `json:"reason,omitempty"`
	Evidence []Evidence `json:"evidence,omitempty"`
	Controls []Control  `json:"controls,omitempty"`
	Figures  []Figure   `json:"figures,omitempty"`
	// Waiver is the one that covers a failure, if it has not expired.
	Waiver  *Waiver `json:"waiver,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Evidence is one value that a check has compared.
type Evidence struct {
	// Object is kind, namespace and name: "Deployment openshift-ingress/router-default".
	Object string `json:"object"`
	// Field is a path in the object, or an operation on it: "spec.replicas", "rollout".
	Field string `json:"field"`
	Want  string `json:"want"`
	Got   string `json:"got"`
	Held  bool   `json:"held"`
}

// Control is a change of a copy with which the check must fail, or must pass.
type Control struct {
	Name string `json:"name"`
	// Want is "fail" or "pass".
	Want     string `json:"want"`
	Detected bool   `json:"detected"`
	// Got is the result of the check if it was wrong.
	Got string `json:"got,omitempty"`
}

// Figure is a measured number.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Waiver covers a known failure until a date.
type Waiver struct {
	ID string `json:"id"`
	// Scenario is empty for all clusters.
	Scenario string `json:"scenario,omitempty"`
	Why      string `json:"why"`
	// Expires is the first day on which it does not count, as 2006-01-02.
	Expires string `json:"expires"`
}

// Count sets Counts.
func (r *Report) Count() {
	r.Counts = make(map[Status]int, len(Statuses()))
	for _, status := range Statuses() {
		r.Counts[status] = 0
	}
	for _, result := range r.Results {
		r.Counts[result.Status]++
	}
}

// operators are those of several reports: what stands in, by module, and what was given.
type operators struct {
	StandIns []string
	Given    []Operator
}

// operatorsOf adds up the exits of the same command on several clusters.
func operatorsOf(reports []Report) operators {
	var o operators
	for _, report := range reports {
		for _, operator := range report.Operators {
			if operator.StandIn {
				if !slices.Contains(o.StandIns, operator.Module) {
					o.StandIns = append(o.StandIns, operator.Module)
				}
				continue
			}
			same := func(other Operator) bool { return other.Module == operator.Module && other.Command == operator.Command }
			if i := slices.IndexFunc(o.Given, same); i >= 0 {
				o.Given[i].Exits += operator.Exits
			} else {
				o.Given = append(o.Given, operator)
			}
		}
	}
	return o
}

// StandInText is the sentence about stand-ins, or empty.
func (o operators) StandInText() string {
	if len(o.StandIns) == 0 {
		return ""
	}
	return "Stand-ins for operators of OpenShift: " + strings.Join(o.StandIns, ", ")
}

// ExitText is the remark about a command that ended by itself, or empty.
func (o Operator) ExitText() string {
	if o.Exits == 0 {
		return ""
	}
	return fmt.Sprintf("ended by itself and was restarted, times: %d", o.Exits)
}

// text is the sentence about a command.
func (o Operator) text() string {
	text := "Given operator of " + o.Module + ": " + o.Command
	if exits := o.ExitText(); exits != "" {
		text += " (" + exits + ")"
	}
	return text
}

// OperatorLines returns a line for the stand-ins of the reports and one for each command.
func OperatorLines(reports ...Report) []string {
	o := operatorsOf(reports)
	var lines []string
	if text := o.StandInText(); text != "" {
		lines = append(lines, text)
	}
	for _, operator := range o.Given {
		lines = append(lines, operator.text())
	}
	return lines
}
