package report

import (
	"time"
)

// APIVersion and Kind begin every report.
const (
	APIVersion = "conformance.sno.solonode.github.io/v1alpha1"
	Kind       = "SingleNodeConformanceReport"
)

// Status is how a check ended. Every check of the catalogue has one in every report.
type Status string

const (
	// Passed says that the behaviour was seen, and that every control of the check was detected.
	Passed Status = "passed"
	// Failed says that the behaviour was not seen, or that the cluster could not be read.
	Failed Status = "failed"
	// Inconclusive says that the behaviour seemed to be there, but a control of the check was not detected.
	Inconclusive Status = "inconclusive"
	// NotApplicable says that the check has nothing to say of a cluster of this kind.
	NotApplicable Status = "notApplicable"
	// Skipped says that the check was left out of this run: its tier was not asked for, or what it needs is not there.
	Skipped Status = "skipped"
)

// Statuses are all of them, in the order in which they are counted.
func Statuses() []Status { return []Status{Passed, Failed, Inconclusive, NotApplicable, Skipped} }

// Report is one run on one cluster.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Scenario is the cluster's name in the table of scenarios, or the one that the caller gave it.
	Scenario string `json:"scenario"`
	// Description says in words what kind of cluster that is.
	Description string `json:"description,omitempty"`
	// Variant says what shaped the cluster: "sno", "baseline", or empty for a cluster that nobody set up for the run.
	Variant string `json:"variant,omitempty"`
	// Provider is where the cluster came from: embedded, existing.
	Provider string   `json:"provider"`
	Topology Topology `json:"topology"`
	// Tool is the version of the program.
	Tool    string    `json:"tool,omitempty"`
	Started time.Time `json:"started"`
	// Seconds is how long the run took.
	Seconds float64 `json:"seconds"`
	// Counts are the results by status. Every status is there, and they add up to the number of results.
	Counts  map[Status]int `json:"counts"`
	Results []Result       `json:"results"`
	// Measurements were taken on the same cluster, beside the checks.
	Measurements []Measurement `json:"measurements,omitempty"`
}

// Measurement is what was measured in an experiment, in words with units.
type Measurement struct {
	What     string `json:"what"`
	Measured string `json:"measured"`
	Bound    string `json:"bound,omitempty"`
	// Compared is what others need for the same, or what became of it without the modules.
	Compared string `json:"compared,omitempty"`
	// Held says that the bound was kept.
	Held bool `json:"held"`
}

// Topology is what the run expected of the Infrastructure object, empty where nobody expected anything, and what it found there.
type Topology struct {
	Expected Modes `json:"expected,omitzero"`
	Observed Modes `json:"observed"`
}

// Modes are the two topologies of infrastructures.config.openshift.io/cluster.
type Modes struct {
	ControlPlane   string `json:"controlPlane,omitempty"`
	Infrastructure string `json:"infrastructure,omitempty"`
}

// Result is what one check found.
type Result struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Module string `json:"module"`
	Level  string `json:"level"`
	Tier   string `json:"tier"`
	// Requirement is the number and the sentence of what asks for the behaviour.
	Requirement string `json:"requirement"`
	Status      Status `json:"status"`
	// Reason says why a check is not applicable, skipped or inconclusive, or what kept it from looking. Nothing that changes from run to run.
	Reason   string     `json:"reason,omitempty"`
	Evidence []Evidence `json:"evidence,omitempty"`
	Controls []Control  `json:"controls,omitempty"`
	// Figures are measured, such as how long a disruption was.
	Figures []Figure `json:"figures,omitempty"`
	// Waiver is the one that covers a failure of this check, if there is one that has not expired.
	Waiver  *Waiver `json:"waiver,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Evidence is one thing that a check looked at.
type Evidence struct {
	// Object is kind, namespace and name: "Deployment openshift-ingress/router-default".
	Object string `json:"object"`
	// Field is a path in it, or what was done to it: "spec.replicas", "rollout".
	Field string `json:"field"`
	Want  string `json:"want"`
	Got   string `json:"got"`
	// Held says that Got is as wanted.
	Held bool `json:"held"`
}

// Control is a change of the cluster that a check must notice, or must not mind.
type Control struct {
	Name string `json:"name"`
	// Want is "red" where the check must fail, "green" where it must hold.
	Want string `json:"want"`
	// Detected says that it did.
	Detected bool `json:"detected"`
	// Got is what the check said instead, for a control that was not detected.
	Got string `json:"got,omitempty"`
}

// Figure is a number that was measured.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Waiver excuses a failure until a day.
type Waiver struct {
	// ID is the check, Scenario the cluster; empty for all.
	ID       string `json:"id"`
	Scenario string `json:"scenario,omitempty"`
	// Why it is excused, for the reader.
	Why string `json:"why"`
	// Expires is the first day on which it no longer counts, as 2006-01-02.
	Expires string `json:"expires"`
}

// Count fills in Counts from Results.
func (r *Report) Count() {
	r.Counts = make(map[Status]int, len(Statuses()))
	for _, status := range Statuses() {
		r.Counts[status] = 0
	}
	for _, result := range r.Results {
		r.Counts[result.Status]++
	}
}
