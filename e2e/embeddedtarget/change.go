// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/testcluster/operand"
	"github.com/solonode/sno/testcluster/scenario"
)

// ErrModule means that no module has the name.
var ErrModule = errors.New("unknown module")

const startLimit = time.Minute

func (s *System) restartNode(ctx context.Context, node string) error {
	return operand.Restart(ctx, s.Cluster, node)
}

// setTopology changes the topology. As on a real cluster, a single control-plane node gets two more before the topology
// becomes highly available, and they are removed after it has become single again.
func (s *System) setTopology(ctx context.Context, controlPlane, infrastructure configv1.TopologyMode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if controlPlane == configv1.HighlyAvailableTopologyMode && s.Scenario.Masters == 1 && len(s.added) == 0 {
		master := s.Scenario.Nodes()[0]
		for _, name := range []string{"master-1", "master-2"} {
			master.Name = name
			if err := s.Cluster.AddNodes(ctx, master); err != nil {
				return err
			}
			if err := s.Cluster.Client().Create(ctx, scenario.EtcdPod(name)); client.IgnoreAlreadyExists(err) != nil {
				return fmt.Errorf("create the pod of etcd: %w", err)
			}
			s.added = append(s.added, name)
		}
		s.removed = nil
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
		s.added, s.removed = s.added[1:], append(s.removed, node)
		if err := s.sweep(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

// sweep deletes the pods of a removed node, which no controller would do within a minute.
func (s *System) sweep(ctx context.Context, node string) error {
	pods, err := s.podsOf(ctx, node)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.times.Settle)
	defer cancel()
	for i := range pods {
		if err := operand.Remove(ctx, s.Cluster, &pods[i]); err != nil {
			return fmt.Errorf("node %s: %w", node, err)
		}
	}
	return nil
}

// sweepLate deletes pods that the scheduler has bound to a node after its removal, with a stale cache.
func (s *System) sweepLate(ctx context.Context) error {
	s.mu.Lock()
	removed := slices.Clone(s.removed)
	s.mu.Unlock()
	for _, node := range removed {
		if err := s.sweep(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

// outage stops the API server for a time, and starts it even if the context ends.
func (s *System) outage(ctx context.Context, length time.Duration) error {
	if err := s.Cluster.KillAPIServer(); err != nil {
		return err
	}
	over := time.NewTimer(length)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
	}
	starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), startLimit)
	defer cancel()
	return errors.Join(s.Cluster.StartAPIServer(starting), ctx.Err())
}

// restartOperator restarts the operator of a module's operands. The stock approver has no process.
func (s *System) restartOperator(ctx context.Context, name string) error {
	module := framework.Module(name)
	if !slices.Contains(framework.AllModules(), module) {
		return fmt.Errorf("%w %q", ErrModule, name)
	}
	return s.RestartOperator(ctx, module)
}

// upgrade restarts every operator, as new images would.
func (s *System) upgrade(ctx context.Context) error {
	return s.Upgrade(ctx, func(ctx context.Context) error {
		for _, module := range framework.AllModules() {
			if err := s.RestartOperator(ctx, module); err != nil {
				return err
			}
		}
		return nil
	})
}
