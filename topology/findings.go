package topology

import (
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
)

// Problem is why a field could not be taken at its word.
type Problem string

const (
	// ProblemEmpty: the field is absent or empty. Normal on a cluster that is older than the field.
	ProblemEmpty Problem = "Empty"
	// ProblemUnknown: the field holds a value that this version of openshift/api does not define.
	ProblemUnknown Problem = "Unknown"
	// ProblemNotApplicable: the value is a topology, but not one that the API allows in this field. It is acted on as it is.
	ProblemNotApplicable Problem = "NotApplicable"
	// ProblemContradicted: status.highAvailabilityMode says one thing and the topology fields, which win, another.
	ProblemContradicted Problem = "Contradicted"
)

// Finding is one field that was empty, unknown, not applicable or contradicted.
type Finding struct {
	// Field is the path inside the Infrastructure object, such as FieldControlPlaneTopology.
	Field string
	// Value is what the field said.
	Value string
	// Problem is what is wrong with it.
	Problem Problem
	// ActedOn is the mode that is used instead: a topology mode, for FieldHighAvailabilityMode a high-availability mode.
	ActedOn string
}

// String is one stable sentence without object names, fit for logs and condition messages.
func (f Finding) String() string {
	switch f.Problem {
	case ProblemEmpty:
		return fmt.Sprintf("%s is empty, acting on %s", f.Field, f.ActedOn)
	case ProblemUnknown:
		return fmt.Sprintf("%s has the unknown value %q, acting on %s", f.Field, f.Value, f.ActedOn)
	case ProblemNotApplicable:
		return fmt.Sprintf("%s has the value %q, which the API does not allow there, acting on %s", f.Field, f.Value, f.ActedOn)
	case ProblemContradicted:
		return fmt.Sprintf("%s is %q but the topologies say %s, acting on %s", f.Field, f.Value, f.ActedOn, f.ActedOn)
	default:
		return fmt.Sprintf("%s is %q: %s, acting on %s", f.Field, f.Value, f.Problem, f.ActedOn)
	}
}

// Findings lists what was empty, unknown, not applicable or contradicted, always in the same order; nil if the object was
// clear. It is for reports: it allocates, decisions do not need it.
func (c Cluster) Findings() []Finding {
	var findings []Finding
	add := func(field, value string, problem Problem, actedOn string) {
		findings = append(findings, Finding{Field: field, Value: value, Problem: problem, ActedOn: actedOn})
	}
	for _, topology := range []struct {
		field   string
		reading Reading
		allowed bool
	}{
		{FieldControlPlaneTopology, c.ControlPlane, true},
		{FieldInfrastructureTopology, c.Infrastructure, infrastructureAllows(c.Infrastructure.Reported)},
	} {
		actedOn := string(effective(topology.reading.Mode))
		switch reported := string(topology.reading.Reported); {
		case topology.reading.Empty():
			add(topology.field, reported, ProblemEmpty, actedOn)
		case topology.reading.Unknown():
			add(topology.field, reported, ProblemUnknown, actedOn)
		case !topology.allowed:
			add(topology.field, reported, ProblemNotApplicable, actedOn)
		}
	}

	if derived := c.HighAvailability(); c.Declared != "" && c.Declared != derived {
		problem := ProblemUnknown
		if _, ok := c.Declared.topology(); ok {
			problem = ProblemContradicted
		}
		add(FieldHighAvailabilityMode, string(c.Declared), problem, string(derived))
	}
	return findings
}

// UnknownValues reports the findings of unknown values, which belong to a later release, as the tail of a message: each after
// "; ", and nothing at all when there are none.
func (c Cluster) UnknownValues() string {
	if !c.ControlPlane.Unknown() && !c.Infrastructure.Unknown() {
		return ""
	}
	var text strings.Builder
	for _, finding := range c.Findings() {
		if finding.Problem == ProblemUnknown {
			text.WriteString("; " + finding.String())
		}
	}
	return text.String()
}

// infrastructureAllows says whether the API accepts the mode as status.infrastructureTopology (its enum has two values).
func infrastructureAllows(mode configv1.TopologyMode) bool {
	switch mode {
	case configv1.HighlyAvailableTopologyMode, configv1.SingleReplicaTopologyMode:
		return true
	case configv1.HighlyAvailableArbiterMode, configv1.DualReplicaTopologyMode, configv1.ExternalTopologyMode:
		return false
	default:
		return false
	}
}
