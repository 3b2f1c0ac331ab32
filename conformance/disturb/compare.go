// SPDX-License-Identifier: Apache-2.0

package disturb

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

// compare performs all acts that restore what they change, and returns the differences to the initial state.
func (d *Disturber) compare(ctx context.Context) ([]string, error) {
	if d.records.Upgrade != nil {
		return nil, fmt.Errorf("%w: an upgrade has changed what was found", catalogue.ErrInconclusive)
	}
	for _, check := range catalogue.All() {
		restored := check.Tier == catalogue.Disruptive && check.Act != catalogue.CompareStates && check.Act != catalogue.UpgradeCluster
		if !restored || check.Excluded(d.Before) != "" || d.Unsupported(check.Act) != "" {
			continue
		}
		if _, err := d.Perform(ctx, check.Act); err != nil {
			return nil, err
		}
	}
	var left []string
	_, err := cluster.Within(ctx, d.Target.Times.Poll, d.Target.Times.Settle, func(ctx context.Context) (bool, error) {
		state, err := d.read(ctx)
		if err != nil {
			return false, err
		}
		left = differences(d.Before, state)
		return len(left) == 0, nil
	})
	return left, err
}

// differences returns created and deleted objects, and changed specifications of Deployments, nodes and budgets.
func differences(before, after *catalogue.State) []string {
	was, is := described(before), described(after)
	changes := cluster.Changes(was, is)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		how := changes[name]
		if how == "written" {
			how = fmt.Sprintf("was %s, is %s", was[name], is[name])
		}
		all = append(all, name+": "+how)
	}
	return all
}

// annotated returns the keys of a pod template's annotations: operators change the values of their own annotations. The
// value counts only for the annotation that a run writes.
func annotated(annotations map[string]string) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		fmt.Fprintf(&text, ", template annotation %s", key)
		if key == rolloutAnnotation {
			fmt.Fprintf(&text, "=%s", annotations[key])
		}
	}
	return text.String()
}

func described(s *catalogue.State) map[string]string {
	all := map[string]string{}
	for i := range s.Deployments {
		d := &s.Deployments[i]
		spec := d.Spec.Template.Spec
		text, err := json.Marshal([]any{spec.NodeSelector, spec.Tolerations, spec.Affinity, d.Spec.Strategy})
		if err != nil {
			text = []byte(err.Error())
		}
		all[catalogue.NameOf(d)] = fmt.Sprintf("%d replicas, %s%s", catalogue.Replicas(d), text, annotated(d.Spec.Template.Annotations))
	}
	for _, node := range s.Nodes {
		all["Node "+node.Name] = fmt.Sprintf("unschedulable %t", node.Spec.Unschedulable)
	}
	for _, budget := range s.Budgets {
		all["PodDisruptionBudget "+budget.Namespace+"/"+budget.Name] = fmt.Sprintf("%v, %v", budget.Spec.MaxUnavailable, budget.Spec.MinAvailable)
	}
	if s.Infrastructure != nil {
		all["Infrastructure cluster"] = fmt.Sprintf("%s, %s", s.Infrastructure.Status.ControlPlaneTopology, s.Infrastructure.Status.InfrastructureTopology)
	}
	return all
}
