// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/report"
)

// Upgrade is the result of an upgrade.
type Upgrade struct {
	// From and To are versions of the ClusterVersion's history, and State is that of the entry To.
	From, To string
	State    configv1.UpdateState
	// Seconds is the time until the entry was Completed.
	Seconds float64
	Disruption
}

var errPartial = errors.New("the upgrade is not complete")

// Succeeded returns an error if the upgrade is not complete, and how the operands came back otherwise.
func (u *Upgrade) Succeeded() (*Disruption, error) {
	if u.State != configv1.CompletedUpdate {
		return nil, fmt.Errorf("%w: %s is %s", errPartial, u.To, u.State)
	}
	return &u.Disruption, nil
}

// Upgrade has the cluster upgraded, and waits until the upgrade is complete and all operands are available.
func (d *Disruptor) Upgrade(ctx context.Context) (*Upgrade, error) {
	return once(d, "upgrade", &d.Results.Upgrade, func() (*Upgrade, error) { return d.cluster.upgrade(ctx) })
}

func (c *targetCluster) upgrade(ctx context.Context) (*Upgrade, error) {
	before, err := c.latestUpdate(ctx)
	if err != nil {
		return nil, err
	}
	upgrade := &Upgrade{From: before.Version}
	disruption, err := c.disturb(ctx, "Upgrading", func(ctx context.Context, _ []appsv1.Deployment) (map[string]string, error) {
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, c.target.Times.Upgrade)
		defer cancel()
		if err := c.target.Upgrade(limited); err != nil {
			return nil, fmt.Errorf("upgrade: %w", err)
		}
		var unread error
		_, err := within(ctx, c.target.Times.Poll, c.target.Times.Upgrade-time.Since(began), func(ctx context.Context) (bool, error) {
			latest, err := c.latestUpdate(ctx)
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
			return nil, fmt.Errorf("%w: status.history of ClusterVersion version has no entry newer than %s", ErrNotPerformed, before.Version)
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
func (c *targetCluster) latestUpdate(ctx context.Context) (configv1.UpdateHistory, error) {
	version := &configv1.ClusterVersion{}
	if err := c.kube.Get(ctx, client.ObjectKey{Name: "version"}, version); err != nil {
		return configv1.UpdateHistory{}, fmt.Errorf("%w: get clusterversions.config.openshift.io: %w", ErrRead, err)
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

func upgradeCheck(id string) Check {
	return Check{
		ID: id, Title: "Operands come back after an upgrade", Module: moduleTopology, Requirement: Requirement{"R-SUITE-8", "a cluster recovers from an upgrade"},
		Level: Core, Tier: Disruptive, Needs: []string{"a provider that can upgrade the cluster"},
		MissingInput: func(in *Input) string {
			return unsupported(in.Disruptor.cluster.target.Upgrade == nil, "upgrades")
		},
		NotApplicable: func(s *State) string {
			if s.ClusterVersion == nil {
				return "ClusterVersion version does not exist"
			}
			return ""
		},
		Run: func(ctx context.Context, in *Input) ([]report.Evidence, error) {
			u, err := in.Disruptor.Upgrade(ctx)
			if err != nil {
				return nil, err
			}
			history := found("ClusterVersion version", "status.history, newest entry", string(configv1.CompletedUpdate), u.To+" is "+string(u.State), u.State == configv1.CompletedUpdate)
			return append([]report.Evidence{history}, u.evidence()...), nil
		},
		Figures: func(in *Input) []report.Figure {
			u := in.Disruptor.Results.Upgrade
			if u == nil {
				return nil
			}
			return append([]report.Figure{{Name: "upgrade completed after", Value: u.Seconds, Unit: "s"}}, u.figures()...)
		},
		Controls: []Control{
			{Name: "the upgrade stays partial", Change: func(in *Input) bool {
				in.Disruptor.Results.Upgrade.State = configv1.PartialUpdate
				return true
			}},
			{Name: "one operand does not recover", Change: func(in *Input) bool {
				operands := in.Disruptor.Results.Upgrade.Operands
				if len(operands) == 0 {
					return false
				}
				operands[0].Failure = "0 of 1 pods are available"
				return true
			}},
			{Name: "a longer upgrade", MustPass: true, Change: func(in *Input) bool { in.Disruptor.Results.Upgrade.Seconds++; return true }},
			onCluster("the upgrade does not complete"),
		},
	}
}
