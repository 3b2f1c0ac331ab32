// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
)

// Problem is why a field is not used as it is.
type Problem string

// The problems.
const (
	ProblemEmpty         Problem = "Empty"         // absent or empty
	ProblemUnknown       Problem = "Unknown"       // this version of openshift/api does not define the value
	ProblemNotApplicable Problem = "NotApplicable" // the API does not allow this topology in this field; it is used all the same
	ProblemContradicted  Problem = "Contradicted"  // status.highAvailabilityMode contradicts the topology fields, which win
)

// Finding is a field with a problem.
type Finding struct {
	// Field is the path, such as FieldControlPlaneTopology, and Value the value.
	Field, Value string
	Problem      Problem
	Effective    string // the mode that is used instead
}

// String returns one stable sentence for logs and condition messages.
func (f Finding) String() string {
	switch f.Problem {
	case ProblemEmpty:
		return fmt.Sprintf("%s is empty, acting on %s", f.Field, f.Effective)
	case ProblemUnknown:
		return fmt.Sprintf("%s has the unknown value %q, acting on %s", f.Field, f.Value, f.Effective)
	case ProblemNotApplicable:
		return fmt.Sprintf("%s has the value %q, which the API does not allow there, acting on %s", f.Field, f.Value, f.Effective)
	case ProblemContradicted:
	}
	return fmt.Sprintf("%s is %q but the topologies mean %s, acting on %[3]s", f.Field, f.Value, f.Effective)
}

// Findings returns all findings in a stable order.
func (c Cluster) Findings() []Finding {
	var findings []Finding
	add := func(field, value string, problem Problem, effectiveMode string) {
		findings = append(findings, Finding{Field: field, Value: value, Problem: problem, Effective: effectiveMode})
	}
	for _, r := range []struct {
		Reading
		field string
	}{{c.ControlPlane, FieldControlPlaneTopology}, {c.Infrastructure, FieldInfrastructureTopology}} {
		allowed := r.field == FieldControlPlaneTopology || r.Reported == configv1.HighlyAvailableTopologyMode || SingleReplica(r.Reported)
		switch effectiveMode := string(effective(r.Mode)); {
		case r.empty():
			add(r.field, "", ProblemEmpty, effectiveMode)
		case r.unknown():
			add(r.field, string(r.Reported), ProblemUnknown, effectiveMode)
		case !allowed:
			add(r.field, string(r.Reported), ProblemNotApplicable, effectiveMode)
		}
	}
	if derived := c.HighAvailability(); c.Declared != "" && c.Declared != derived {
		problem := ProblemUnknown
		if declaredTopologies[c.Declared] != "" {
			problem = ProblemContradicted
		}
		add(FieldHighAvailabilityMode, string(c.Declared), problem, string(derived))
	}
	return findings
}

// UnknownValues returns the findings of unknown values as a suffix of a message, each after "; ".
func (c Cluster) UnknownValues() string {
	text := ""
	for _, finding := range c.Findings() {
		if finding.Problem == ProblemUnknown {
			text += "; " + finding.String()
		}
	}
	return text
}
