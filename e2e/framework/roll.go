// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/solonode/sno/testcluster/operand"
	"github.com/solonode/sno/testcluster/scenario"
)

// Roll changes an annotation of the pod templates and returns when the rollouts have ended. The console operator is
// stopped meanwhile: it would revert the change, and the Deployment controller with its stale cache could then scale
// both ReplicaSets down. When it runs again, its revert is another rollout.
func (s *ScenarioCluster) Roll(ctx context.Context, want []scenario.Operand, revision string) error {
	host := s.Cluster.Program(Console.Host().Name)
	if host != nil {
		if err := s.terminate(ctx, Console, host); err != nil {
			return err
		}
	}
	if err := operand.Roll(ctx, s.Cluster, want, revision); err != nil {
		return err
	}
	if err := operand.WaitSettled(ctx, s.Cluster.Client(), want); err != nil {
		return err
	}
	if host == nil {
		return nil
	}
	if err := s.RunHost(ctx, Console, s.hosts[Console]...); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, poll, operand.WaitTimeout, true, func(ctx context.Context) (bool, error) {
		live, err := operand.Deployment(ctx, s.Cluster.Client(), want[0])
		return err == nil && live.Spec.Template.Annotations[operand.RevisionAnnotation] == "", err
	})
	if err != nil {
		return fmt.Errorf("the console operator does not revert annotation %s of the pods of %s: %w", operand.RevisionAnnotation, want[0], err)
	}
	return operand.WaitSettled(ctx, s.Cluster.Client(), want)
}
