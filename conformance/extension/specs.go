// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"fmt"
	"slices"
	"strings"

	"github.com/solonode/sno/conformance/catalogue"
)

// titles are the titles with which renamed checks were released, by id. A test requires an entry when a title changes,
// so that results of a test can be followed over releases.
var titles = map[string]string{}

func specs(checks []catalogue.Check) []spec {
	all := make([]spec, 0, len(checks))
	for _, check := range checks {
		s := spec{
			Name: check.Name(), Labels: map[string]struct{}{}, Source: self.String(), Lifecycle: lifecycle(check),
			EnvironmentSelector: environmentSelector{Include: include(check)},
		}
		for _, label := range check.Labels() {
			s.Labels[label] = struct{}{}
		}
		if title, ok := titles[check.ID]; ok {
			check.Title = title
			s.OriginalName = check.Name()
		}
		all = append(all, s)
	}
	return all
}

func lifecycle(check catalogue.Check) string {
	if check.Level == catalogue.Core {
		return blocking
	}
	return informing
}

func include(check catalogue.Check) string {
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
func among(all []catalogue.Check, topology string) []catalogue.Check {
	return slices.DeleteFunc(slices.Clone(all), func(check catalogue.Check) bool {
		return topology != "" && len(check.Topologies) > 0 && !slices.Contains(check.Topologies, topology)
	})
}
