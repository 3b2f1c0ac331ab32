// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Outage is the result of an outage of the API server.
type Outage struct {
	// Both are in seconds. Recovery is the time until all checks passed again.
	Length, Recovery float64
	Failure          string
	// Leases are the leader elections by name: "kept" or "lost".
	Leases map[string]string
}

// InterruptAPIServer stops the API server for Times.Outage.
func (s *Disruptor) InterruptAPIServer(ctx context.Context) (*Outage, error) {
	if s.Results.Outage != nil {
		return s.Results.Outage, nil
	}
	c := s.cluster
	before, err := c.leases(ctx)
	if err != nil {
		return nil, err
	}
	failedBefore, err := c.failuresBefore(ctx)
	if err != nil {
		return nil, err
	}
	length := c.target.Times.Outage
	c.progressf("Stopping the API server for %s", length)
	if err := c.target.Outage(ctx, length); err != nil {
		return nil, fmt.Errorf("stop the API server: %w", err)
	}
	outage := &Outage{Length: length.Seconds(), Leases: map[string]string{}}
	began := time.Now()
	_, err = within(ctx, c.target.Times.Poll, c.target.Times.Settle, func(ctx context.Context) (bool, error) {
		state, err := c.read(ctx)
		if err != nil {
			if ctx.Err() == nil {
				outage.Failure = err.Error() // the API server is starting
			}
			return false, nil
		}
		outage.Failure = c.firstFailure(ctx, state, failedBefore)
		return outage.Failure == "", nil
	})
	if err != nil {
		return nil, err
	}
	outage.Recovery = time.Since(began).Seconds()
	after, err := c.leases(ctx)
	if err != nil {
		return nil, err
	}
	for name, holder := range before {
		outage.Leases[name] = "kept"
		if after[name] != holder {
			outage.Leases[name] = "lost"
		}
	}
	s.Results.Outage = outage
	return outage, nil
}

// firstFailure returns the first failure that did not exist before the outage, or "".
func (c *targetCluster) firstFailure(ctx context.Context, state *State, failedBefore map[string]string) string {
	for _, module := range append(changeableModules(), moduleTopology) {
		if failedBefore[module] != "" {
			continue
		}
		if wrong, err := c.failureOf(ctx, module, state); err != nil {
			return err.Error()
		} else if wrong != "" {
			return wrong
		}
	}
	return c.unavailableDeployment(state)
}

// unavailableDeployment returns the first Deployment that was available before and is not now.
func (c *targetCluster) unavailableDeployment(state *State) string {
	for i := range state.Deployments {
		d := &state.Deployments[i]
		if was := c.before.Deployment(d.Namespace, d.Name); was != nil && was.Status.AvailableReplicas == replicas(was) && d.Status.AvailableReplicas < replicas(d) {
			return nameOf(d) + ": " + unsettled(state, d.Namespace, d.Name)
		}
	}
	return ""
}

func (c *targetCluster) leases(ctx context.Context) (map[string]string, error) {
	var list coordinationv1.LeaseList
	if err := c.kube.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("%w: list leases: %w", ErrRead, err)
	}
	held, inPayload := map[string]string{}, newPayload(c.target.PayloadNamespaces).has
	for _, lease := range list.Items {
		if (inPayload(lease.Namespace) || strings.HasPrefix(lease.Namespace, "sno-")) && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
			transitions := int32(0)
			if lease.Spec.LeaseTransitions != nil {
				transitions = *lease.Spec.LeaseTransitions
			}
			held[lease.Namespace+"/"+lease.Name] = fmt.Sprintf("%s, %d transitions", *lease.Spec.HolderIdentity, transitions)
		}
	}
	return held, nil
}
