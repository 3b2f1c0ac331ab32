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
	MissingInput func(*Environment) string
	// Run returns the evidence. With an error the check has failed; it is inconclusive with ErrInconclusive,
	// ErrForbidden, or a Forbidden error of the API server.
	Run func(context.Context, *Environment) ([]report.Evidence, error)
	// Figures returns measurements after Run.
	Figures func(*Environment) []report.Figure
	// Controls must contain a negative one and a positive one (MustPass).
	Controls []Control
}

// Control is a change that verifies a check: with it the check must fail, or must pass.
type Control struct {
	Name     string
	MustPass bool
	// Change modifies a copy. It returns false if it is not possible on this cluster; the control is left out then.
	Change func(*Environment) bool
}

// Environment is the input of checks.
type Environment struct {
	State *State
	// Copier is nil without the scheduled tier.
	Copier *WorkloadCopier
	// Disruptor is nil without the disruptive tier.
	Disruptor *Disruptor
	Times     Times

	// changed is set in the copy for a control.
	changed bool
	// CSR and IdleWrites are recorded by the checks that need them.
	CSR        *CSROutcome
	IdleWrites *IdleWrites
}

// copied returns a copy of everything that a control may change.
func (b *Environment) copied() *Environment {
	c := *b
	c.changed = true
	c.State = b.State.DeepCopy()
	c.Disruptor = b.Disruptor.copied()
	if b.CSR != nil {
		csr := *b.CSR
		c.CSR = &csr
	}
	if b.IdleWrites != nil {
		c.IdleWrites = &IdleWrites{Wrote: maps.Clone(b.IdleWrites.Wrote)}
	}
	return &c
}
