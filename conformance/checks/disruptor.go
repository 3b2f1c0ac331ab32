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

// Disruptor is what is done to a cluster, and what came of it. Each act is done once, by the first check that asks for it. What is recorded
// of it is what checks judge, and what their controls change.
type Disruptor struct {
	cluster *targetCluster
	Results DisruptionResults
	// flipped is why the flip could not be made; it is not tried twice.
	changeErr error
}

// DisruptionResults is the record.
type DisruptionResults struct {
	// Rollout, Eviction and NodeRestart are disruptions of all operands.
	Rollout, Eviction, NodeRestart *Disruption
	// TopologyChanges are changes of the topology and back, by module.
	TopologyChanges map[string]*TopologyChange
	// Outage is an outage of the API server.
	Outage *Outage
	// Drains are requests of nodes to be drained.
	Drains []Drain
	// Differences is what is different from before all acts, each as "object: what"; nil before that was looked at.
	Differences []string
}

// targetCluster is the cluster on which a story plays.
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
	told := &c.Results
	told.Rollout, told.Eviction, told.NodeRestart = told.Rollout.copied(), told.Eviction.copied(), told.NodeRestart.copied()
	told.TopologyChanges = maps.Clone(told.TopologyChanges)
	for module, flip := range told.TopologyChanges {
		told.TopologyChanges[module] = ptr.To(*flip)
	}
	if told.Outage != nil {
		told.Outage = ptr.To(*told.Outage)
		told.Outage.Leases = maps.Clone(told.Outage.Leases)
	}
	told.Drains, told.Differences = slices.Clone(told.Drains), slices.Clone(told.Differences)
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
