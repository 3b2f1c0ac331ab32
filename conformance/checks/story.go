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

// Story is what is done to a cluster, and what came of it. Each act is done once, by the first check that asks for it. What is recorded
// of it is what checks judge, and what their controls change.
type Story struct {
	cluster *theatre
	Told    Told
	// flipped is why the flip could not be made; it is not tried twice.
	flipped error
}

// Told is the record.
type Told struct {
	// Rolled, Evicted and Restarted are disturbances of all operands.
	Rolled, Evicted, Restarted *Disturbance
	// Flips are changes of the topology and back, by module.
	Flips map[string]*Flip
	// Outage is an outage of the API server.
	Outage *Outage
	// Drains are requests of nodes to be drained.
	Drains []Drain
	// Left is what is different from before all acts, each as "object: what"; nil before that was looked at.
	Left []string
}

// theatre is the cluster on which a story plays.
type theatre struct {
	target Target
	kube   client.Client
	set    kubernetes.Interface
	checks []Check
	before *State
}

func (s *Story) copied() *Story {
	if s == nil {
		return nil
	}
	c := &Story{cluster: s.cluster, Told: s.Told, flipped: s.flipped}
	told := &c.Told
	told.Rolled, told.Evicted, told.Restarted = told.Rolled.copied(), told.Evicted.copied(), told.Restarted.copied()
	told.Flips = maps.Clone(told.Flips)
	for module, flip := range told.Flips {
		told.Flips[module] = ptr.To(*flip)
	}
	if told.Outage != nil {
		told.Outage = ptr.To(*told.Outage)
		told.Outage.Leases = maps.Clone(told.Outage.Leases)
	}
	told.Drains, told.Left = slices.Clone(told.Drains), slices.Clone(told.Left)
	return c
}

func (c *theatre) read(ctx context.Context) (*State, error) {
	return Read(ctx, c.kube, c.target.PayloadNamespaces)
}

func (c *theatre) say(format string, args ...any) {
	if c.target.Progress != nil {
		_, _ = fmt.Fprintf(c.target.Progress, format+"\n", args...)
	}
}
