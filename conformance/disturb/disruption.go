// SPDX-License-Identifier: Apache-2.0

package disturb

import (
	"cmp"
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

// disrupt calls do and waits until all operands are available. It does not wait for those for which do returns a
// failure.
func (d *Disturber) disrupt(
	ctx context.Context, what string, do func(context.Context, []appsv1.Deployment) (map[string]string, error),
) (*catalogue.Disruption, error) {
	d.Target.Progressf("%s", what)
	state, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	all := state.Operands()
	watching, err := watchAvailability(ctx, d.Set, all, d.Target.Times.Poll)
	if err != nil {
		return nil, err
	}
	defer watching.stop()
	refused, err := do(ctx, all)
	if err != nil {
		return nil, err
	}
	wrong := map[string]string{}
	var unread error
	_, err = cluster.Within(ctx, d.Target.Times.Poll, d.Target.Times.Settle, func(ctx context.Context) (bool, error) {
		state, err := d.read(ctx)
		if ctx.Err() == nil { // an API server on a disturbed node can fail again
			unread = err
		}
		switch {
		case errors.Is(err, catalogue.ErrForbidden):
			return false, err
		case err != nil:
			return false, nil
		}
		clear(wrong)
		for i := range all {
			name := catalogue.NameOf(&all[i])
			if why := state.Unsettled(all[i].Namespace, all[i].Name); why != "" && refused[name] == "" {
				wrong[name] = why
			}
		}
		return len(wrong) == 0, nil
	})
	if err := errors.Join(err, unread); err != nil {
		return nil, err
	}
	disruption := &catalogue.Disruption{}
	for i := range all {
		name := catalogue.NameOf(&all[i])
		disruption.Operands = append(disruption.Operands, catalogue.OperandDisruption{
			Name: name, Failure: cmp.Or(refused[name], wrong[name]), Downtime: watching.away(name),
		})
	}
	return disruption, nil
}

// waitAvailable waits for the Deployments that were available before all acts.
func (d *Disturber) waitAvailable(ctx context.Context) error {
	_, err := cluster.Within(ctx, d.Target.Times.Poll, d.Target.Times.Settle, func(ctx context.Context) (bool, error) {
		state, err := d.read(ctx)
		return err == nil && d.unavailable(state) == "", err
	})
	return err
}

// unavailable returns the first Deployment that was available before all acts and is not now.
func (d *Disturber) unavailable(state *catalogue.State) string {
	for i := range state.Deployments {
		now := &state.Deployments[i]
		was := d.Before.Deployment(now.Namespace, now.Name)
		if was != nil && was.Status.AvailableReplicas == catalogue.Replicas(was) && now.Status.AvailableReplicas < catalogue.Replicas(now) {
			return catalogue.NameOf(now) + ": " + state.Unsettled(now.Namespace, now.Name)
		}
	}
	return ""
}
