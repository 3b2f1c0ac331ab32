package checks

import (
	"context"
	"errors"
	"maps"

	"github.com/solonode/sno/conformance/report"
)

// ErrUnknown says that no check has an id.
var ErrUnknown = errors.New("unknown check")

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
	// Pool says that Run looks at State.Pool, which is not read otherwise.
	Pool bool
	// Applies returns why the check has nothing to say of this cluster, or nothing when it has. Nil: it always has.
	Applies func(*State) string
	// Without returns what the run was not given that the check needs, or nothing. Such a check is skipped.
	Without func(*Bench) string
	// Run looks. An error means that it could not look, which is a failure; with ErrHindered or ErrForbidden, or one of the API server's of that kind, it is
	// inconclusive.
	Run func(context.Context, *Bench) ([]report.Evidence, error)
	// Figures are what was measured on the way; asked for after Run.
	Figures func(*Bench) []report.Figure
	// Controls are at least one that must turn the check red and one that must leave it green.
	Controls []Control
}

// Control is a change that a check must notice, or must not mind.
type Control struct {
	Name string
	// Green controls must leave the check as it is; the others must turn it red.
	Green bool
	// Change is done to a copy. It returns false when the cluster has nothing that could be changed so; then the control does not count.
	Change func(*Bench) bool
}

// Bench is what a check works with.
type Bench struct {
	// State is the cluster as it was read.
	State *State
	// Lab schedules copies of Deployments. Nil where that was not asked for.
	Lab *Lab
	// Story is what was done to the cluster, and what came of it. Nil where that was not asked for.
	Story *Story
	Times Times

	// changed says that this is the copy of a control.
	changed bool
	// Asked and Rest are what the checks of that name have seen.
	Asked *Asked
	Rest  *Rest
}

// copied is a bench of which everything can be changed that a control may change.
func (b *Bench) copied() *Bench {
	c := *b
	c.changed = true
	c.State = b.State.DeepCopy()
	c.Story = b.Story.copied()
	if b.Asked != nil {
		asked := *b.Asked
		c.Asked = &asked
	}
	if b.Rest != nil {
		c.Rest = &Rest{Wrote: maps.Clone(b.Rest.Wrote)}
	}
	return &c
}
