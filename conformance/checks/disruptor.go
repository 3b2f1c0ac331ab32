// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
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
}

// DisruptionResults is the record of all acts; nil for those that were not performed.
type DisruptionResults struct {
	Rollout, Eviction, NodeRestart *Disruption
	TopologyChanges                map[string]*TopologyChange
	Outage                         *Outage
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

func (s *Disruptor) copied() *Disruptor {
	if s == nil {
		return nil
	}
	c := &Disruptor{cluster: s.cluster, Results: s.Results, changeErr: s.changeErr}
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
