// SPDX-License-Identifier: Apache-2.0

package disturb

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/traffic"
)

const (
	// probeInterval is the time between two requests to the API server during an outage.
	probeInterval = 250 * time.Millisecond
	// probeTolerance is by how much the requests can miss the begin and the end of an outage.
	probeTolerance = 2 * probeInterval
	probeStable    = time.Second
	probeLimit     = 30 * time.Second
)

// interruptAPIServer stops the API server for Times.Outage. An API server that answers requests in the meantime was not
// stopped.
func (d *Disturber) interruptAPIServer(ctx context.Context) (*catalogue.Outage, error) {
	before, err := d.leases(ctx)
	if err != nil {
		return nil, err
	}
	failedBefore, err := d.failuresBefore()
	if err != nil {
		return nil, err
	}
	length := d.Target.Times.Outage
	d.Target.Progressf("Stopping the API server for %s", length)
	probes, err := d.probe(ctx)
	if err != nil {
		return nil, err
	}
	defer probes.Stop()
	limited, cancel := context.WithTimeout(ctx, length+d.Target.Times.Settle)
	defer cancel()
	if err := d.Target.Outage(limited, length); err != nil {
		return nil, fmt.Errorf("stop the API server: %w", err)
	}
	outage := &catalogue.Outage{Leases: map[string]string{}}
	began := time.Now()
	_, err = cluster.Within(ctx, d.Target.Times.Poll, d.Target.Times.Settle, func(ctx context.Context) (bool, error) {
		state, err := d.read(ctx)
		if err != nil {
			if ctx.Err() == nil {
				outage.Failure = err.Error() // the API server is starting
			}
			return false, nil
		}
		outage.Failure = d.firstFailure(state, failedBefore)
		return outage.Failure == "", nil
	})
	if err != nil {
		return nil, err
	}
	outage.Recovery = time.Since(began).Seconds()
	unanswered := traffic.Longest(traffic.Outages(probes.Stop()), time.Now())
	if outage.Length = unanswered.Seconds(); unanswered < length-probeTolerance {
		d.Target.Progressf("The API server did not answer for %s", unanswered)
		return nil, fmt.Errorf("%w: the API server answered during the outage of %s", catalogue.ErrNotPerformed, length)
	}
	after, err := d.leases(ctx)
	if err != nil {
		return nil, err
	}
	// The controller manager and the scheduler back off longer than operators. Until they follow the outage is not over.
	switch outage.MissingWorkload, err = d.NewWorkload(ctx); {
	case errors.Is(err, catalogue.ErrInconclusive):
		d.Target.Progressf("Whether new workloads follow after the outage is not known: %v", err)
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
func (d *Disturber) probe(ctx context.Context) (*traffic.Generator, error) {
	address, _, err := rest.DefaultServerUrlFor(d.Target.Config)
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	probes := traffic.Start(ctx, traffic.Endpoint{URL: address.JoinPath("version").String(), Errors: http.StatusInternalServerError, Interval: probeInterval})
	if err := probes.WaitAnswered(ctx, probeStable, probeLimit); err != nil {
		probes.Stop()
		return nil, fmt.Errorf("%w: without a proxy the API server does not answer: %w", catalogue.ErrInconclusive, err)
	}
	return probes, nil
}

// firstFailure returns the first failure that did not exist before the outage, or "".
func (d *Disturber) firstFailure(state *catalogue.State, failedBefore map[string]string) string {
	for _, module := range append(changeableModules(), catalogue.Topology) {
		if failedBefore[module] != "" {
			continue
		}
		if wrong, err := failureOf(module, state); err != nil {
			return err.Error()
		} else if wrong != "" {
			return wrong
		}
	}
	return d.unavailable(state)
}

func (d *Disturber) leases(ctx context.Context) (map[string]string, error) {
	var list coordinationv1.LeaseList
	if err := d.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("%w: list leases: %w", catalogue.ErrRead, err)
	}
	held := map[string]string{}
	for _, lease := range list.Items {
		counts := cluster.InPayload(d.Target.PayloadNamespaces, lease.Namespace) || strings.HasPrefix(lease.Namespace, "sno-")
		if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); counts && holder != "" {
			held[lease.Namespace+"/"+lease.Name] = fmt.Sprintf("%s, %d transitions", holder, ptr.Deref(lease.Spec.LeaseTransitions, 0))
		}
	}
	return held, nil
}
