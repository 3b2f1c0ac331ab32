package naming

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/conformance/checks"
)

// Suite begins the name of every check.
const Suite = "[sno-conformance]"

// Name is what machines know a check by. It holds no quantities, so that it stays the same when limits change.
func Name(check checks.Check) string { return Suite + " " + Text(check) }

// Text is the name without that of the suite.
func Text(check checks.Check) string { return "[" + check.ID + "] " + check.Title }

// Labels are what checks are chosen by: tier, module, level, requirement, and every topology for which the check can apply. Disruptive checks are
// Serial too.
func Labels(check checks.Check) []string {
	labels := []string{
		"tier:" + string(check.Tier), "module:" + check.Module, "level:" + string(check.Level), "requirement:" + check.Requirement.ID,
	}
	for _, topology := range Topologies(check) {
		labels = append(labels, "topology:"+topology)
	}
	if check.Tier == checks.Disruptive {
		labels = append(labels, "Serial", "Disruptive")
	}
	return labels
}

// Topologies are the values of controlPlaneTopology for which a check can apply, spelled out where it is all of them.
func Topologies(check checks.Check) []string {
	if len(check.Topologies) > 0 {
		return check.Topologies
	}
	return []string{
		string(configv1.HighlyAvailableTopologyMode), string(configv1.HighlyAvailableArbiterMode), string(configv1.DualReplicaTopologyMode),
		string(configv1.SingleReplicaTopologyMode), string(configv1.ExternalTopologyMode),
	}
}
