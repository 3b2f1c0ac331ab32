// SPDX-License-Identifier: Apache-2.0

package disturb

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

var errPartial = errors.New("the upgrade is not complete")

// Upgrade has the cluster upgraded, if that has not been done. An upgrade that is not complete is an error.
func (d *Disturber) Upgrade(ctx context.Context) (*catalogue.Disruption, error) {
	records, err := d.Perform(ctx, catalogue.UpgradeCluster)
	if err != nil {
		return nil, err
	}
	if u := records.Upgrade; u.State != configv1.CompletedUpdate {
		return nil, fmt.Errorf("%w: %s is %s", errPartial, u.To, u.State)
	}
	return &records.Upgrade.Disruption, nil
}

// upgrade waits until the upgrade is complete and all operands are available.
func (d *Disturber) upgrade(ctx context.Context) (*catalogue.UpgradeResult, error) {
	before, err := d.latestUpdate(ctx)
	if err != nil {
		return nil, err
	}
	upgrade := &catalogue.UpgradeResult{From: before.Version}
	disruption, err := d.disrupt(ctx, "Upgrading", func(ctx context.Context, _ []appsv1.Deployment) (map[string]string, error) {
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, d.Target.Times.Upgrade)
		defer cancel()
		if err := d.Target.Upgrade(limited); err != nil {
			return nil, fmt.Errorf("upgrade: %w", err)
		}
		var unread error
		_, err := cluster.Within(ctx, d.Target.Times.Poll, d.Target.Times.Upgrade-time.Since(began), func(ctx context.Context) (bool, error) {
			latest, err := d.latestUpdate(ctx)
			if ctx.Err() == nil { // the API server on a single node restarts, too
				unread = err
			}
			if err == nil && newer(latest, before) {
				upgrade.To, upgrade.State = latest.Version, latest.State
			}
			return upgrade.State == configv1.CompletedUpdate, nil
		})
		switch {
		case err != nil:
			return nil, err
		case unread != nil:
			return nil, unread
		case upgrade.State == "":
			return nil, fmt.Errorf("%w: status.history of ClusterVersion version has no entry newer than %s", catalogue.ErrNotPerformed, before.Version)
		}
		upgrade.Seconds = time.Since(began).Seconds()
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	upgrade.Disruption = *disruption
	return upgrade, nil
}

// latestUpdate returns the newest entry of the history.
func (d *Disturber) latestUpdate(ctx context.Context) (configv1.UpdateHistory, error) {
	version := &configv1.ClusterVersion{}
	if err := d.Client.Get(ctx, client.ObjectKey{Name: "version"}, version); err != nil {
		return configv1.UpdateHistory{}, fmt.Errorf("%w: get clusterversions.config.openshift.io: %w", catalogue.ErrRead, err)
	}
	if len(version.Status.History) == 0 {
		return configv1.UpdateHistory{}, nil
	}
	return version.Status.History[0], nil
}

// newer reports whether an entry is another and began later. The cluster-version-operator changes the state and the
// completion time of an entry.
func newer(latest, before configv1.UpdateHistory) bool {
	another := latest.Version != before.Version || latest.Image != before.Image || !latest.StartedTime.Equal(&before.StartedTime)
	return another && !latest.StartedTime.Before(&before.StartedTime)
}
