// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"

	"github.com/solonode/sno/e2e/kindtarget"
	"github.com/solonode/sno/testcluster/kind"
	"github.com/solonode/sno/testcluster/scenario"
)

// lane is a cluster with the work on it, in order.
type lane struct {
	config kind.Config
	suite  bool
	chosen []kindtarget.Experiment
}

// secondSuffix is the suffix of the second cluster's name.
const secondSuffix = "-second"

// lanes divides the work between two clusters, if there is work for both.
func (o options) lanes(chosen []kindtarget.Experiment) []lane {
	all := lane{config: o.kind, suite: !o.noSuite, chosen: chosen}
	first, second := lane{config: o.kind, suite: !o.noSuite}, lane{config: o.kind}
	second.config.Name += secondSuffix
	for _, experiment := range chosen {
		if experiment.SecondCluster {
			second.chosen = append(second.chosen, experiment)
		} else {
			first.chosen = append(first.chosen, experiment)
		}
	}
	if o.one || len(second.chosen) == 0 || len(first.chosen) == 0 && !first.suite {
		return []lane{all}
	}
	return []lane{first, second}
}

// fitting is lanes, or one lane if this machine is too small for two.
func (o options) fitting(ctx context.Context, chosen []kindtarget.Experiment) ([]lane, error) {
	s, err := scenario.Lookup(o.scenario)
	if err != nil {
		return nil, err //nolint:wrapcheck // complete
	}
	lanes := o.lanes(chosen)
	if len(lanes) == 1 {
		return lanes, nil // checked when the cluster is created
	}
	var needed []kind.Config
	for _, l := range lanes {
		l.config.ControlPlanes, l.config.Workers = s.Masters, s.Day1Workers+s.Day2Workers
		needed = append(needed, l.config)
	}
	if slices.ContainsFunc(chosen, func(e kindtarget.Experiment) bool { return e.OwnCluster }) {
		needed = append(needed, kind.Config{Name: o.kind.Name + "-own", ControlPlanes: ownClusterNodes})
	}
	err = kind.CheckPreconditions(ctx, needed...)
	if errors.Is(err, kind.ErrInsufficientResources) && !errors.Is(err, kind.ErrAlreadyExists) {
		o.progress.logf("All on one cluster, which takes longer: %v", err)
		o.one = true
		return o.lanes(chosen), nil
	}
	return lanes, err
}

// ownClusterNodes is the maximum number of nodes of an experiment's own cluster.
const ownClusterNodes = 3
