// SPDX-License-Identifier: Apache-2.0

package naming

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/conformance/catalogue"
)

// Suite is the prefix of all names.
const Suite = "[sno-conformance]"

// Name identifies a check in CI. It contains no quantities, so that it is stable when limits change.
func Name(check catalogue.Check) string { return Suite + " " + Text(check) }

// Text returns the name without the suite.
func Text(check catalogue.Check) string { return "[" + check.ID + "] " + check.Title }

// Labels returns tier, module, level, requirement and topologies as labels to select checks. Disruptive checks are
// Serial too.
func Labels(check catalogue.Check) []string {
	labels := []string{
		"tier:" + string(check.Tier), "module:" + check.Module, "level:" + string(check.Level), "requirement:" + check.Requirement.ID,
	}
	for _, topology := range Topologies(check) {
		labels = append(labels, "topology:"+topology)
	}
	if check.Tier == catalogue.Disruptive {
		labels = append(labels, "Serial", "Disruptive")
	}
	return labels
}

// Topologies returns the values of controlPlaneTopology for which a check can apply, all of them if it has no
// restriction.
func Topologies(check catalogue.Check) []string {
	if len(check.Topologies) > 0 {
		return check.Topologies
	}
	return []string{
		string(configv1.HighlyAvailableTopologyMode), string(configv1.HighlyAvailableArbiterMode), string(configv1.DualReplicaTopologyMode),
		string(configv1.SingleReplicaTopologyMode), string(configv1.ExternalTopologyMode),
	}
}
