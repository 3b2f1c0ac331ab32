// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"maps"

	"github.com/solonode/sno/conformance/report"
)

// ErrUnknownCheck is returned for an id that no check has.
var ErrUnknownCheck = errors.New("unknown check")

// Level is the importance of a check.
type Level string

const (
	// Core checks define a conformant cluster.
	Core Level = "core"
	// Extended checks are recommendations.
	Extended Level = "extended"
)

// Tier is what a check does to a cluster.
type Tier string

const (
	// Static checks only read.
	Static Tier = "static"
	// Scheduled checks create objects in their own namespaces.
	Scheduled Tier = "scheduled"
	// Disruptive checks change objects of the cluster.
	Disruptive Tier = "disruptive"
)

// Tiers returns all tiers, the least disruptive first.
func Tiers() []Tier { return []Tier{Static, Scheduled, Disruptive} }

// Requirement is the reason for a check.
type Requirement struct {
	// ID is its number in docs/requirements.md.
	ID       string
	Sentence string
}

// String returns both for reports.
func (r Requirement) String() string { return r.ID + ": " + r.Sentence }

// Check verifies one behaviour.
type Check struct {
	// ID is SNO-<module>-<number> and is never reused for another behaviour.
	ID string
	// Title is a sentence without quantities, because it is part of the test's name.
	Title       string
	Module      string
	Requirement Requirement
	Level       Level
	Tier        Tier
	// Topologies are the values of controlPlaneTopology for which the check can apply; empty for all. Commands that
	// list tests without a cluster use them.
	Topologies []string
	// Needs are the preconditions, for the catalogue.
	Needs []string
	// NeedsPool is set if Run uses State.Pool, which is not read otherwise.
	NeedsPool bool
	// NotApplicable returns why the check does not apply to this cluster, or "". Nil means that it always applies.
	NotApplicable func(*State) string
	// MissingInput returns which input of the run is missing, or "". The check is skipped then.
	MissingInput func(*Input) string
	// Run returns the evidence. With an error the check has failed; it is inconclusive with ErrInconclusive,
	// ErrNotPerformed, ErrForbidden, or a Forbidden error of the API server.
	Run func(context.Context, *Input) ([]report.Evidence, error)
	// Figures returns measurements after Run.
	Figures func(*Input) []report.Figure
	// Recorded is set if Run observes the cluster once and then evaluates its record. Disruptive checks need not set it.
	Recorded bool
	// Controls must contain a negative one and a positive one (MustPass), and a check with a record one of KindCluster.
	Controls []Control
}

// Control is a change that verifies a check: with it the check must fail, or must pass.
type Control struct {
	Name     string
	MustPass bool
	// Change modifies a copy. It returns false if it is not possible on this cluster; the control is left out then. It is
	// nil for a control of KindCluster, which only a cluster that was created for it allows.
	Change func(*Input) bool
}

// ControlKind is what a control changes, and so what it proves.
type ControlKind string

const (
	// KindState is a change of a copy of State: the check evaluates the changed objects.
	KindState ControlKind = "state"
	// KindRecord is a change of the recorded result: it proves the comparison, and not that the check detects the fault.
	KindRecord ControlKind = "record"
	// KindCluster is a fault of a real cluster. `make conformance-controls` causes it on an embedded one.
	KindCluster ControlKind = "cluster"
)

// ControlKinds returns all kinds.
func ControlKinds() []ControlKind { return []ControlKind{KindState, KindRecord, KindCluster} }

// KindOf returns the kind of one of the check's controls.
func (c Check) KindOf(control Control) ControlKind {
	switch {
	case control.Change == nil:
		return KindCluster
	case c.hasRecord():
		return KindRecord
	default:
		return KindState
	}
}

func (c Check) hasRecord() bool { return c.Recorded || c.Tier == Disruptive }

// onCluster returns a control that e2e/embeddedtarget implements under the check's id and this name.
func onCluster(name string) Control { return Control{Name: name} }

// Input is the input of checks.
type Input struct {
	State *State
	// Copier is nil without the scheduled tier.
	Copier *WorkloadCopier
	// Disruptor is nil without the disruptive tier.
	Disruptor *Disruptor
	Times     Times
	// IdleOperators is that of Target.
	IdleOperators func(context.Context) ([]string, error)

	// changed is set in the copy for a control.
	changed bool
	// CSR and IdleWrites are recorded by the checks that need them.
	CSR        *CSROutcome
	IdleWrites *IdleWrites
}

// copied returns a copy of everything that a control may change.
func (in *Input) copied() *Input {
	c := *in
	c.changed = true
	c.State = in.State.DeepCopy()
	c.Disruptor = in.Disruptor.copied()
	if in.CSR != nil {
		csr := *in.CSR
		c.CSR = &csr
	}
	if in.IdleWrites != nil {
		c.IdleWrites = &IdleWrites{Wrote: maps.Clone(in.IdleWrites.Wrote)}
	}
	return &c
}
