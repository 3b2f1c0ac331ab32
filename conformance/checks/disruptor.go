// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Disruptor performs disruptive acts and records their results. Each act is performed once, for the first check that
// needs it. Checks evaluate the record, and their controls change a copy of it.
type Disruptor struct {
	cluster *targetCluster
	Results DisruptionResults
	// changeErr is why the topology could not be changed; it is not tried again.
	changeErr error
	// notPerformed are acts that did not happen, with the reason. They are not tried again.
	notPerformed map[string]error
}

// DisruptionResults is the record of all acts; nil for those that were not performed.
type DisruptionResults struct {
	Rollout, Eviction, NodeRestart *Disruption
	TopologyChanges                map[string]*TopologyChange
	Outage                         *Outage
	Upgrade                        *Upgrade
	Drains                         []Drain
	// Differences to the state before all acts, each as "object: what".
	Differences []string
}

type targetCluster struct {
	target Target
	kube   client.Client
	set    kubernetes.Interface
	checks []Check
	before *State
}

// NewDisruptor connects, and waits until the cluster is stable.
func NewDisruptor(ctx context.Context, target Target) (*Disruptor, error) {
	r, err := NewRunner(ctx, target, Selection{Tiers: []Tier{Disruptive}})
	if err != nil {
		return nil, err
	}
	state, err := r.settle(ctx)
	if err != nil {
		return nil, err
	}
	return r.newDisruptor(state), nil
}

// once performs an act if no check has needed it before.
func once[T any](d *Disruptor, act string, record **T, do func() (*T, error)) (*T, error) {
	if *record != nil || d.notPerformed[act] != nil {
		return *record, d.notPerformed[act]
	}
	done, err := do()
	if errors.Is(err, ErrNotPerformed) {
		d.notPerformed[act] = err
	}
	if err != nil {
		return nil, err
	}
	*record = done
	return done, nil
}

func (d *Disruptor) copied() *Disruptor {
	if d == nil {
		return nil
	}
	c := &Disruptor{cluster: d.cluster, Results: d.Results, changeErr: d.changeErr, notPerformed: maps.Clone(d.notPerformed)}
	r := &c.Results
	r.Rollout, r.Eviction, r.NodeRestart = r.Rollout.copied(), r.Eviction.copied(), r.NodeRestart.copied()
	r.TopologyChanges = maps.Clone(r.TopologyChanges)
	for module, change := range r.TopologyChanges {
		r.TopologyChanges[module] = ptr.To(*change)
	}
	if r.Outage != nil {
		r.Outage = ptr.To(*r.Outage)
		r.Outage.Leases = maps.Clone(r.Outage.Leases)
	}
	if r.Upgrade != nil {
		r.Upgrade = ptr.To(*r.Upgrade)
		r.Upgrade.Operands = slices.Clone(r.Upgrade.Operands)
	}
	r.Drains, r.Differences = slices.Clone(r.Drains), slices.Clone(r.Differences)
	return c
}

func (c *targetCluster) read(ctx context.Context) (*State, error) {
	return Read(ctx, c.kube, c.target.PayloadNamespaces)
}

func (c *targetCluster) progressf(format string, args ...any) {
	if c.target.Progress != nil {
		_, _ = fmt.Fprintf(c.target.Progress, format+"\n", args...)
	}
}
