// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Change is a field that a module would change, or may not.
type Change struct {
	Module  string `json:"module"`
	Object  string `json:"object"`
	Field   string `json:"field"`
	Desired string `json:"desired"`
	Verdict string `json:"verdict"`
	Why     string `json:"why,omitempty"`
}

// Plan is what would change on a cluster, or why it has no plan.
type Plan struct {
	Cluster string   `json:"cluster"`
	Changes []Change `json:"changes,omitempty"`
	Refused string   `json:"refused,omitempty"`
}

// PlanGroup has the clusters with equal plans, sorted by name.
type PlanGroup struct {
	Clusters []string `json:"clusters"`
	Changes  []Change `json:"changes,omitempty"`
	Refused  string   `json:"refused,omitempty"`
}

// GroupPlans puts clusters with equal plans together, whatever the order of the changes: refused ones first, then the
// largest group first.
func GroupPlans(plans []Plan) []PlanGroup {
	byContent := map[string]*PlanGroup{}
	for _, p := range plans {
		changes := slices.SortedFunc(slices.Values(p.Changes), func(a, b Change) int {
			return cmp.Or(strings.Compare(a.Module, b.Module), strings.Compare(a.Object, b.Object), strings.Compare(a.Field, b.Field))
		})
		content := fmt.Sprintf("%q %q", p.Refused, changes)
		group := byContent[content]
		if group == nil {
			group = &PlanGroup{Changes: changes, Refused: p.Refused}
			byContent[content] = group
		}
		group.Clusters = append(group.Clusters, p.Cluster)
	}
	var groups []PlanGroup
	for _, g := range byContent {
		slices.Sort(g.Clusters)
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b PlanGroup) int {
		refused := func(g PlanGroup) int {
			if g.Refused != "" {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(refused(a), refused(b)), cmp.Compare(len(b.Clusters), len(a.Clusters)), strings.Compare(a.Clusters[0], b.Clusters[0]))
	})
	return groups
}
