package checks

import (
	"context"
	"errors"
	"maps"

	"github.com/solonode/sno/conformance/report"
)

// ErrUnknownCheck says that no check has an id.
var ErrUnknownCheck = errors.New("unknown check")

// Level says how much a check means.
type Level string

const (
	// Core is what a cluster must do to be called conformant.
	Core Level = "core"
	// Extended is what it should do.
	Extended Level = "extended"
)

// Tier says what a check does to a cluster.
type Tier string

const (
	// Static checks read.
	Static Tier = "static"
	// Scheduled checks work in namespaces of their own.
	Scheduled Tier = "scheduled"
	// Disruptive checks disturb what is there.
	Disruptive Tier = "disruptive"
)

// Tiers are all of them, from the mildest to the wildest.
func Tiers() []Tier { return []Tier{Static, Scheduled, Disruptive} }

// Requirement is what asks for a behaviour.
type Requirement struct {
	// ID is its number in docs/requirements.md of this repository.
	ID string
	// Sentence is the requirement in one short sentence.
	Sentence string
}

// String returns both, as reports have them.
func (r Requirement) String() string { return r.ID + ": " + r.Sentence }

// Check is one behaviour.
type Check struct {
	// ID is stable, SNO-<module>-<number>. It is never given to another behaviour.
	ID string
	// Title is a sentence without quantities, so that it stays true.
	Title       string
	Module      string
	Requirement Requirement
	Level       Level
	Tier        Tier
	// Topologies are the values of controlPlaneTopology for which the check can apply; empty for all. It is all that a lister without
	// a cluster can know.
	Topologies []string
	// Needs says in words what the cluster must have, for the catalogue.
	Needs []string
	// NeedsPool says that Run looks at State.Pool, which is not read otherwise.
	NeedsPool bool
	// NotApplicable returns why the check has nothing to say of this cluster, or nothing when it has. Nil: it always has.
	NotApplicable func(*State) string
	// MissingInput returns what the run was not given that the check needs, or nothing. Such a check is skipped.
	MissingInput func(*Environment) string
	// Run looks. An error means that it could not look, which is a failure; with ErrInconclusive or ErrForbidden, or one of the API server's of that kind, it is
	// inconclusive.
	Run func(context.Context, *Environment) ([]report.Evidence, error)
	// Figures are what was measured on the way; asked for after Run.
	Figures func(*Environment) []report.Figure
	// Controls are at least one that must turn the check red and one that must leave it green.
	Controls []Control
}

// Control is a change that a check must notice, or must not mind.
type Control struct {
	Name string
	// MustPass controls must leave the check as it is; the others must turn it red.
	MustPass bool
	// Change is done to a copy. It returns false when the cluster has nothing that could be changed so; then the control does not count.
	Change func(*Environment) bool
}

// Environment is what a check works with.
type Environment struct {
	// State is the cluster as it was read.
	State *State
	// Copier schedules copies of Deployments. Nil where that was not asked for.
	Copier *WorkloadCopier
	// Disruptor is what was done to the cluster, and what came of it. Nil where that was not asked for.
	Disruptor *Disruptor
	Times     Times

	// changed says that this is the copy of a control.
	changed bool
	// CSR and IdleWrites are what the checks of that name have seen.
	CSR        *CSROutcome
	IdleWrites *IdleWrites
}

// copied is a bench of which everything can be changed that a control may change.
func (b *Environment) copied() *Environment {
	c := *b
	c.changed = true
	c.State = b.State.DeepCopy()
	c.Disruptor = b.Disruptor.copied()
	if b.CSR != nil {
		asked := *b.CSR
		c.CSR = &asked
	}
	if b.IdleWrites != nil {
		c.IdleWrites = &IdleWrites{Wrote: maps.Clone(b.IdleWrites.Wrote)}
	}
	return &c
}
