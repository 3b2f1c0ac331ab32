// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/conformance/traffic"
)

// Outage is the result of an outage of the API server.
type Outage struct {
	// All are in seconds. Length is how long no request was answered, Recovery the time from the end of the act until all
	// checks passed again, and NewWorkload the time until a new Deployment had come and gone; 0 if that is not known.
	Length, Recovery, NewWorkload float64
	// Failure is what has not recovered, and MissingWorkload what a new Deployment lacks; "" if nothing.
	Failure, MissingWorkload string
	// Leases are the leader elections by name: "kept" or "lost".
	Leases map[string]string
}

const (
	// probeInterval is the time between two requests to the API server during an outage.
	probeInterval = 250 * time.Millisecond
	// probeTolerance is by how much the requests can miss the begin and the end of an outage.
	probeTolerance = 2 * probeInterval
	probeStable    = time.Second
	probeLimit     = 30 * time.Second
)

// InterruptAPIServer stops the API server for Times.Outage. An API server that answers requests in the meantime was not
// stopped.
func (d *Disruptor) InterruptAPIServer(ctx context.Context) (*Outage, error) {
	return once(d, "outage", &d.Results.Outage, func() (*Outage, error) { return d.cluster.interruptAPIServer(ctx) })
}

func (c *targetCluster) interruptAPIServer(ctx context.Context) (*Outage, error) {
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
	probes, err := c.probe(ctx)
	if err != nil {
		return nil, err
	}
	defer probes.Stop()
	limited, cancel := context.WithTimeout(ctx, length+c.target.Times.Settle)
	defer cancel()
	if err := c.target.Outage(limited, length); err != nil {
		return nil, fmt.Errorf("stop the API server: %w", err)
	}
	outage := &Outage{Leases: map[string]string{}}
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
	unanswered := traffic.Longest(traffic.Outages(probes.Stop()), time.Now())
	if outage.Length = unanswered.Seconds(); unanswered < length-probeTolerance {
		c.progressf("The API server did not answer for %s", unanswered)
		return nil, fmt.Errorf("%w: the API server answered during the outage of %s", ErrNotPerformed, length)
	}
	after, err := c.leases(ctx)
	if err != nil {
		return nil, err
	}
	// The controller manager and the scheduler back off longer than operators. Until they follow the outage is not over.
	switch outage.MissingWorkload, err = c.newWorkload(ctx); {
	case errors.Is(err, ErrInconclusive):
		c.progressf("Whether new workloads follow after the outage is not known: %v", err)
	case err != nil:
		return nil, err
	default:
		outage.NewWorkload = time.Since(began).Seconds()
	}
	for name, holder := range before {
		outage.Leases[name] = "kept"
		if after[name] != holder {
			outage.Leases[name] = "lost"
		}
	}
	return outage, nil
}

// probe sends requests to the API server, without an account: any answer that is no error of a server counts.
func (c *targetCluster) probe(ctx context.Context) (*traffic.Generator, error) {
	address, _, err := rest.DefaultServerUrlFor(c.target.Config)
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	probes := traffic.Start(ctx, traffic.Endpoint{URL: address.JoinPath("version").String(), Errors: http.StatusInternalServerError, Interval: probeInterval})
	if err := probes.WaitAnswered(ctx, probeStable, probeLimit); err != nil {
		probes.Stop()
		return nil, fmt.Errorf("%w: without a proxy the API server does not answer: %w", ErrInconclusive, err)
	}
	return probes, nil
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
