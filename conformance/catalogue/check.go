// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/solonode/sno/conformance/report"
)

var (
	// ErrRead is returned if a part of the cluster could not be read.
	ErrRead = errors.New("cannot read the cluster")
	// ErrForbidden is returned if the account lacks a permission.
	ErrForbidden = errors.New("a permission is missing")
	// ErrInconclusive is returned if the cluster prevents a check for a reason that the check is not about.
	ErrInconclusive = errors.New("the cluster prevents the check")
	// ErrNotPerformed is returned if an act was requested and did not happen.
	ErrNotPerformed = errors.New("the disruption did not happen")
)

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

// Modules of the checks.
const (
	Topology      = "topology"
	ingress       = "ingress"
	etcdGuard     = "etcdguard"
	machineConfig = "machineconfig"
	console       = "console"
	auth          = "auth"
	approver      = "approver"
)

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
	// Copies are the Deployments of which Run evaluates Input.Copies, up to Stage.
	Copies []types.NamespacedName
	Stage  Stage
	// Act is performed before Run, which evaluates its part of Input.Records; empty for none.
	Act Act
	// Run returns the evidence. With an error the check has failed.
	Run func(*Input) ([]report.Evidence, error)
	// Figures returns measurements after a Run without an error.
	Figures func(Records) []report.Figure
	// Controls must contain a negative one and a positive one (MustPass), and a check with an act one of KindCluster.
	Controls []Control
}

// Suite is the prefix of all names.
const Suite = "[sno-conformance]"

// Name identifies a check in CI. It contains no quantities, so that it is stable when limits change.
func (c Check) Name() string { return Suite + " " + c.Text() }

// Text returns the name without the suite.
func (c Check) Text() string { return "[" + c.ID + "] " + c.Title }

// Labels returns tier, module, level, requirement and topologies as labels to select checks, all topologies if the
// check has no restriction. Disruptive checks are Serial too.
func (c Check) Labels() []string {
	labels := []string{"tier:" + string(c.Tier), "module:" + c.Module, "level:" + string(c.Level), "requirement:" + c.Requirement.ID}
	topologies := c.Topologies
	if len(topologies) == 0 {
		topologies = []string{"HighlyAvailable", "HighlyAvailableArbiter", "DualReplica", "SingleReplica", "External"}
	}
	for _, topology := range topologies {
		labels = append(labels, "topology:"+topology)
	}
	if c.Tier == Disruptive {
		labels = append(labels, "Serial", "Disruptive")
	}
	return labels
}

// Result returns a skipped result with the fields of the catalogue.
func (c Check) Result() report.Result {
	return report.Result{
		ID: c.ID, Title: c.Title, Module: c.Module, Level: string(c.Level), Tier: string(c.Tier), Requirement: c.Requirement.String(), Status: report.Skipped,
	}
}

// Excluded returns why the check does not apply to a cluster, or "".
func (c Check) Excluded(s *State) string {
	if c.NotApplicable == nil {
		return ""
	}
	return c.NotApplicable(s)
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

// KindOf returns the kind of one of the check's controls.
func (c Check) KindOf(control Control) ControlKind {
	switch {
	case control.Change == nil:
		return KindCluster
	case c.Act != "":
		return KindRecord
	default:
		return KindState
	}
}

// onCluster returns a control that e2e/modules implements under the check's id and this name.
func onCluster(name string) Control { return Control{Name: name} }
