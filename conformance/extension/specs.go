// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"fmt"
	"slices"
	"strings"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/naming"
)

// titles are the first published titles of renamed checks, by id. update requires an entry when a title changes, so
// that results of a test can be followed over releases.
var titles = map[string]string{
	"SNO-APP-001": "The stock approver approves no client certificates by itself on a single control-plane node",
	"SNO-APP-002": "The stock approver works as it came where the control plane is not a single node",
	"SNO-APP-003": "A request of a node that nobody expects stays pending",
	"SNO-AUT-002": "The Deployment oauth-apiserver has a single replica, and is available, on a single control-plane node",
	"SNO-AUT-005": "The Deployment oauth-apiserver has several replicas, on different nodes, where the control plane is highly available",
	"SNO-AUT-006": "A rollout of oauth-openshift and oauth-apiserver ends",
	"SNO-AUT-007": "Every pod of oauth-openshift and oauth-apiserver can be evicted and is replaced",
	"SNO-AUT-008": "A deleted pod of oauth-openshift and oauth-apiserver comes back to its pool",
	"SNO-CON-006": "The Deployment downloads is not kept as a static manifest says",
	"SNO-ETC-003": "The guards' budget lets go as many as leave a quorum",
	"SNO-TOP-001": "The Infrastructure object says both topologies, in values that are known",
	"SNO-TOP-004": "No pod of OpenShift waits for a node that would take it",
}

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

func lifecycle(check checks.Check) string {
	if check.Level == checks.Core {
		return blocking
	}
	return informing
}

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

// among drops checks that cannot apply with a controlPlaneTopology; none if it is empty.
func among(catalogue []checks.Check, topology string) []checks.Check {
	return slices.DeleteFunc(slices.Clone(catalogue), func(check checks.Check) bool {
		return topology != "" && len(check.Topologies) > 0 && !slices.Contains(check.Topologies, topology)
	})
}
