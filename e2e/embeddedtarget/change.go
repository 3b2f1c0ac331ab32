package embeddedtarget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/e2e/harness"
	"github.com/solonode/sno/testcluster/operand"
)

// ErrModule says that there is no module of a name.
var ErrModule = errors.New("unknown module")

// back is how long an API server may take to come back.
const back = time.Minute

// restartNode restarts a node.
func (s *system) restartNode(ctx context.Context, node string) error {
	return operand.Restart(ctx, s.Cluster, node)
}

// setTopology changes the topology. A single control-plane node gets two more before it is called highly available, as whoever does that in
// life must see to, and loses them after it is called single again.
func (s *system) setTopology(ctx context.Context, controlPlane, infrastructure configv1.TopologyMode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if controlPlane == configv1.HighlyAvailableTopologyMode && s.Scenario.Masters == 1 && len(s.added) == 0 {
		master := s.Scenario.Nodes()[0]
		for _, name := range []string{"master-1", "master-2"} {
			master.Name = name
			if err := s.Cluster.AddNode(ctx, master); err != nil {
				return err
			}
			s.added = append(s.added, name)
		}
		s.gone = nil
	}
	if err := s.SetTopology(ctx, controlPlane, infrastructure); err != nil {
		return err
	}
	if controlPlane != configv1.SingleReplicaTopologyMode {
		return nil
	}
	for len(s.added) > 0 {
		node := s.added[0]
		if err := s.Cluster.DeleteNode(ctx, node); err != nil {
			return err
		}
		s.added, s.gone = s.added[1:], append(s.gone, node)
		if err := s.sweep(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

// sweep takes the pods of a node away that is gone, which nobody else would do within a minute.
func (s *system) sweep(ctx context.Context, node string) error {
	pods, err := s.podsOf(ctx, node)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.settle)
	defer cancel()
	for i := range pods {
		if err := operand.Remove(ctx, s.Cluster, &pods[i]); err != nil {
			return fmt.Errorf("node %s: %w", node, err)
		}
	}
	return nil
}

// sweepLate is for pods that the scheduler bound to a node when that was gone already: it hears of that late on a busy machine.
func (s *system) sweepLate(ctx context.Context) error {
	s.mu.Lock()
	gone := slices.Clone(s.gone)
	s.mu.Unlock()
	for _, node := range gone {
		if err := s.sweep(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

// outage takes the API server away for a time. It comes back even if nobody waits any more.
func (s *system) outage(ctx context.Context, length time.Duration) error {
	if err := s.Cluster.KillAPIServer(); err != nil {
		return err
	}
	over := time.NewTimer(length)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
	}
	starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), back)
	defer cancel()
	return errors.Join(s.Cluster.StartAPIServer(starting), ctx.Err())
}

// restartOperator restarts whatever shapes the operands of a module. Nothing does where today's approver is: it is not played.
func (s *system) restartOperator(ctx context.Context, name string) error {
	module := harness.Module(name)
	if !slices.Contains(harness.AllModules(), module) {
		return fmt.Errorf("%w %q", ErrModule, name)
	}
	if process := s.stand[module]; process != nil {
		process.Restart()
	}
	return s.RestartOperator(ctx, module)
}
