// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/harness"
	"github.com/solonode/sno/testcluster/operand"
	"github.com/solonode/sno/testcluster/scenario"
)

// ErrModule means that no module has the name.
var ErrModule = errors.New("unknown module")

const startLimit = time.Minute

func (s *system) restartNode(ctx context.Context, node string) error {
	return operand.Restart(ctx, s.Cluster, node)
}

// setTopology changes the topology. As on a real cluster, a single control-plane node gets two more before the topology
// becomes highly available, and they are removed after it has become single again.
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

// sweepLate deletes pods that the scheduler has bound to a node after its removal, with a stale cache.
func (s *system) sweepLate(ctx context.Context) error {
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
	starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), startLimit)
	defer cancel()
	return errors.Join(s.Cluster.StartAPIServer(starting), ctx.Err())
}

// restartOperator restarts the operator of a module's operands. The stock approver has no process.
func (s *system) restartOperator(ctx context.Context, name string) error {
	module := harness.Module(name)
	if !slices.Contains(harness.AllModules(), module) {
		return fmt.Errorf("%w %q", ErrModule, name)
	}
	return s.RestartOperator(ctx, module)
}

// upgrade stands in for the cluster-version-operator during an upgrade to the next patch release: it adds an entry to the
// history, restarts every operator as a new image would, and completes the entry.
func (s *system) upgrade(ctx context.Context) error {
	err := s.writeHistory(ctx, func(history []configv1.UpdateHistory) []configv1.UpdateHistory {
		next := configv1.UpdateHistory{State: configv1.PartialUpdate, StartedTime: metav1.Now(), Version: nextPatch(history)}
		next.Image = "registry.invalid/release:" + next.Version
		return append([]configv1.UpdateHistory{next}, history...)
	})
	for _, module := range harness.AllModules() {
		if err == nil {
			err = s.RestartOperator(ctx, module)
		}
	}
	if err != nil {
		return err
	}
	return s.writeHistory(ctx, func(history []configv1.UpdateHistory) []configv1.UpdateHistory {
		history[0].State, history[0].CompletionTime = configv1.CompletedUpdate, ptr.To(metav1.Now())
		return history
	})
}

func nextPatch(history []configv1.UpdateHistory) string {
	if len(history) == 0 {
		return scenario.Release
	}
	now := version.MustParseSemantic(history[0].Version)
	return now.WithPatch(now.Patch() + 1).String()
}

func (s *system) writeHistory(ctx context.Context, change func([]configv1.UpdateHistory) []configv1.UpdateHistory) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live := &configv1.ClusterVersion{}
		if err := s.Cluster.Client().Get(ctx, client.ObjectKey{Name: scenario.ClusterVersionName}, live); err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		live.Status.History = change(live.Status.History)
		live.Status.Desired = configv1.Release{Version: live.Status.History[0].Version, Image: live.Status.History[0].Image}
		return s.Cluster.Client().Status().Update(ctx, live, client.FieldOwner(scenario.VersionOperatorManager)) //nolint:wrapcheck // wrapped below
	})
	if err != nil {
		return fmt.Errorf("write the history of ClusterVersion %s: %w", scenario.ClusterVersionName, err)
	}
	return nil
}
