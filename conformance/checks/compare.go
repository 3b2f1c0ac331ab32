// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Compare performs all acts and returns the differences to the initial state.
func (d *Disruptor) Compare(ctx context.Context, all []func(context.Context) error) ([]string, error) {
	if d.Results.Differences != nil {
		return d.Results.Differences, nil
	}
	if d.Results.Upgrade != nil {
		return nil, fmt.Errorf("%w: an upgrade has changed what was found", ErrInconclusive)
	}
	for _, act := range all {
		if err := act(ctx); err != nil {
			return nil, err
		}
	}
	left := []string{}
	_, err := within(ctx, d.cluster.target.Times.Poll, d.cluster.target.Times.Settle, func(ctx context.Context) (bool, error) {
		state, err := d.cluster.read(ctx)
		if err != nil {
			return false, err
		}
		left = differences(d.cluster.before, state)
		return len(left) == 0, nil
	})
	if err != nil {
		return nil, err
	}
	d.Results.Differences = left
	return left, nil
}

// differences returns created and deleted objects, and changed specifications of Deployments, nodes and budgets.
func differences(before, after *State) []string {
	was, is := described(before), described(after)
	all := []string{}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if now, ok := is[name]; !ok {
			all = append(all, name+": deleted")
		} else if now != was[name] {
			all = append(all, fmt.Sprintf("%s: was %s, is %s", name, was[name], now))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, ok := was[name]; !ok {
			all = append(all, name+": created")
		}
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

func described(s *State) map[string]string {
	all := map[string]string{}
	for i := range s.Deployments {
		d := &s.Deployments[i]
		spec := d.Spec.Template.Spec
		text, err := json.Marshal([]any{spec.NodeSelector, spec.Tolerations, spec.Affinity, d.Spec.Strategy})
		if err != nil {
			text = []byte(err.Error())
		}
		all[nameOf(d)] = fmt.Sprintf("%d replicas, %s%s", replicas(d), text, annotated(d.Spec.Template.Annotations))
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
