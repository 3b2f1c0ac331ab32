// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"maps"
	"time"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

const readsPerQuiet = 3

// watchWrites waits for a period without writes, and returns the last ones if there is none. A cluster that has just
// become stable may need several tries.
func (r *Runner) watchWrites(ctx context.Context) (map[string]string, error) {
	before, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	versions, since := versionsOf(before), time.Now()
	wrote := map[string]string{}
	quiet, err := cluster.Within(ctx, r.target.Times.Quiet/readsPerQuiet, r.target.Times.Settle, func(ctx context.Context) (bool, error) {
		state, err := r.read(ctx)
		if err != nil {
			return false, err
		}
		now := versionsOf(state)
		if !maps.Equal(versions, now) {
			wrote = cluster.Changes(versions, now)
			versions, since = now, time.Now()
		}
		return time.Since(since) >= r.target.Times.Quiet, nil
	})
	if quiet {
		clear(wrote)
	}
	return wrote, err
}

func versionsOf(s *catalogue.State) map[string]string {
	all := map[string]string{}
	for i := range s.Deployments {
		all[catalogue.NameOf(&s.Deployments[i])] = s.Deployments[i].ResourceVersion
	}
	for _, budget := range s.Budgets {
		all["PodDisruptionBudget "+budget.Namespace+"/"+budget.Name] = budget.ResourceVersion
	}
	if s.IngressController != nil {
		all[catalogue.RouterController] = s.IngressController.ResourceVersion
	}
	if s.Console != nil {
		all["Console cluster"] = s.Console.ResourceVersion
	}
	if s.Authentication != nil {
		all["Authentication cluster"] = s.Authentication.ResourceVersion
	}
	if s.Etcd != nil {
		all["Etcd cluster"] = s.Etcd.ResourceVersion
	}
	if s.ClusterVersion != nil {
		all["ClusterVersion version"] = s.ClusterVersion.ResourceVersion
	}
	return all
}
