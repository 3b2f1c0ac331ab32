package topology

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
)

// Problem is why a field could not be used as it is.
type Problem string

// The problems that a field can have.
const (
	ProblemEmpty         Problem = "Empty"         // absent or empty
	ProblemUnknown       Problem = "Unknown"       // this version of openshift/api does not define the value
	ProblemNotApplicable Problem = "NotApplicable" // the API does not allow this topology in this field; it is used all the same
	ProblemContradicted  Problem = "Contradicted"  // status.highAvailabilityMode contradicts the topology fields, which win
)

// Finding is one field that was empty, unknown, not applicable or contradicted.
type Finding struct {
	// Field is the path inside the Infrastructure object, such as FieldControlPlaneTopology, and Value its value.
	Field, Value string
	Problem      Problem
	// Effective is what is used instead: a topology mode, or for FieldHighAvailabilityMode a high-availability mode.
	Effective string
}

// String returns one stable sentence without object names, fit for logs and condition messages.
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

// Findings returns what was empty, unknown, not applicable or contradicted, in a stable order.
func (c Cluster) Findings() []Finding {
	var findings []Finding
	add := func(field, value string, problem Problem, actedOn string) {
		findings = append(findings, Finding{Field: field, Value: value, Problem: problem, Effective: actedOn})
	}
	for _, r := range []struct {
		Reading
		field string
	}{{c.ControlPlane, FieldControlPlaneTopology}, {c.Infrastructure, FieldInfrastructureTopology}} {
		allowed := r.field == FieldControlPlaneTopology || r.Reported == configv1.HighlyAvailableTopologyMode || SingleReplica(r.Reported)
		switch actedOn := string(effective(r.Mode)); {
		case r.Empty():
			add(r.field, "", ProblemEmpty, actedOn)
		case r.Unknown():
			add(r.field, string(r.Reported), ProblemUnknown, actedOn)
		case !allowed:
			add(r.field, string(r.Reported), ProblemNotApplicable, actedOn)
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

// UnknownValues returns the findings of unknown values as the end of a message, each after "; ".
func (c Cluster) UnknownValues() string {
	text := ""
	for _, finding := range c.Findings() {
		if finding.Problem == ProblemUnknown {
			text += "; " + finding.String()
		}
	}
	return text
}
