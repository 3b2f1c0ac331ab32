package extension

import (
	"fmt"
	"slices"
	"strings"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/naming"
)

// titles are those under which checks were first published, by id, where they have another one today. `update` asks for an entry when a title
// changes.
var titles = map[string]string{
	"SNO-APP-001": "The stock approver approves no client certificates by itself on a single control-plane node",
	"SNO-AUT-002": "The Deployment oauth-apiserver has a single replica, and is available, on a single control-plane node",
	"SNO-AUT-005": "The Deployment oauth-apiserver has several replicas, on different nodes, where the control plane is highly available",
	"SNO-AUT-006": "A rollout of oauth-openshift and oauth-apiserver ends",
	"SNO-AUT-007": "Every pod of oauth-openshift and oauth-apiserver can be evicted and is replaced",
	"SNO-AUT-008": "A deleted pod of oauth-openshift and oauth-apiserver comes back to its pool",
}

// specs are the tests of some checks.
func specs(checks []checks.Check) []spec {
	all := make([]spec, 0, len(checks))
	for _, check := range checks {
		s := spec{
			Name: naming.Name(check), Labels: map[string]struct{}{}, Source: self.String(), Lifecycle: lifecycle(check),
			EnvironmentSelector: environmentSelector{Include: include(check)},
		}
		for _, label := range naming.Labels(check) {
			s.Labels[label] = struct{}{}
		}
		if title, ok := titles[check.ID]; ok {
			check.Title = title
			s.OriginalName = naming.Name(check)
		}
		all = append(all, s)
	}
	return all
}

// lifecycle lets a release be blocked only by what makes a cluster conformant.
func lifecycle(check checks.Check) string {
	if check.Level == checks.Core {
		return blocking
	}
	return informing
}

// include is true for the topologies for which a check can apply; empty for all.
func include(check checks.Check) string {
	terms := make([]string, len(check.Topologies))
	for i, topology := range check.Topologies {
		terms[i] = fmt.Sprintf("topology==%q", topology)
	}
	switch len(terms) {
	case 0, 1:
		return strings.Join(terms, "")
	default:
		return "(" + strings.Join(terms, " || ") + ")"
	}
}

// among leaves out checks that cannot apply for a value of controlPlaneTopology. Without one everything stays, and a check that has nothing to say
// of the cluster says so when it runs.
func among(catalogue []checks.Check, topology string) []checks.Check {
	return slices.DeleteFunc(slices.Clone(catalogue), func(check checks.Check) bool {
		return topology != "" && len(check.Topologies) > 0 && !slices.Contains(check.Topologies, topology)
	})
}
