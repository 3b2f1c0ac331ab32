// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/scenario"
)

// Upgrade stands in for the cluster-version-operator during an upgrade to the next patch release: it adds an entry to
// the history, has the operators replaced, and completes the entry. After an error the entry stays Partial.
func (s *ScenarioCluster) Upgrade(ctx context.Context, replace func(context.Context) error) error {
	err := s.writeHistory(ctx, func(history []configv1.UpdateHistory) []configv1.UpdateHistory {
		next := configv1.UpdateHistory{State: configv1.PartialUpdate, StartedTime: metav1.Now(), Version: nextPatch(history)}
		next.Image = "registry.invalid/release:" + next.Version
		return append([]configv1.UpdateHistory{next}, history...)
	})
	if err != nil {
		return err
	}
	if err := replace(ctx); err != nil {
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

func (s *ScenarioCluster) writeHistory(ctx context.Context, change func([]configv1.UpdateHistory) []configv1.UpdateHistory) error {
	kube := s.Cluster.Client()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live := &configv1.ClusterVersion{}
		if err := kube.Get(ctx, client.ObjectKey{Name: scenario.ClusterVersionName}, live); err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		live.Status.History = change(live.Status.History)
		live.Status.Desired = configv1.Release{Version: live.Status.History[0].Version, Image: live.Status.History[0].Image}
		return kube.Status().Update(ctx, live, client.FieldOwner(scenario.VersionOperatorManager)) //nolint:wrapcheck // wrapped below
	})
	if err != nil {
		return fmt.Errorf("write the history of ClusterVersion %s: %w", scenario.ClusterVersionName, err)
	}
	return nil
}
