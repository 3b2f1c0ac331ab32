package checks

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Outage is how the cluster took an outage of its API server.
type Outage struct {
	// Length is for how long, Recovery until everything was as wanted again, both in seconds.
	Length, Recovery float64
	Failure          string
	// Leases are the leader elections of operators and controllers: name to "kept", or what happened.
	Leases map[string]string
}

// InterruptAPIServer takes the API server away for a while.
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
	c.progressf("Taking the API server away for %s", length)
	if err := c.target.Outage(ctx, length); err != nil {
		return nil, fmt.Errorf("take the API server away: %w", err)
	}
	outage := &Outage{Length: length.Seconds(), Leases: map[string]string{}}
	began := time.Now()
	_, err = within(ctx, c.target.Times.Poll, c.target.Times.Settle, func(ctx context.Context) (bool, error) {
		state, err := c.read(ctx)
		if err != nil {
			if ctx.Err() == nil {
				outage.Failure = err.Error() // it is only coming back
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

// firstFailure is the first thing that is wrong and was not before.
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

// unavailableDeployment is the first Deployment that has fewer pods than it should and had them before.
func (c *targetCluster) unavailableDeployment(state *State) string {
	for i := range state.Deployments {
		d := &state.Deployments[i]
		if was := c.before.Deployment(d.Namespace, d.Name); was != nil && was.Status.AvailableReplicas == replicas(was) && d.Status.AvailableReplicas < replicas(d) {
			return nameOf(d) + ": " + unsettled(state, d.Namespace, d.Name)
		}
	}
	return ""
}

// leases are the leader elections in OpenShift's namespaces and in our own: who holds them, since which transition.
func (c *targetCluster) leases(ctx context.Context) (map[string]string, error) {
	var list coordinationv1.LeaseList
	if err := c.kube.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("%w: list leases: %w", ErrRead, err)
	}
	held, ours := map[string]string{}, payloadOf(c.target.PayloadNamespaces).has
	for _, lease := range list.Items {
		if (ours(lease.Namespace) || strings.HasPrefix(lease.Namespace, "sno-")) && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
			transitions := int32(0)
			if lease.Spec.LeaseTransitions != nil {
				transitions = *lease.Spec.LeaseTransitions
			}
			held[lease.Namespace+"/"+lease.Name] = fmt.Sprintf("%s, %d transitions", *lease.Spec.HolderIdentity, transitions)
		}
	}
	return held, nil
}
