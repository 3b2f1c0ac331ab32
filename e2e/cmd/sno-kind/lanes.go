package main

import (
	"context"
	"errors"
	"slices"

	"github.com/solonode/sno/e2e/kindtarget"
	"github.com/solonode/sno/testcluster/kind"
	"github.com/solonode/sno/testcluster/scenario"
)

// lane is a cluster with what is done on it, one after the other.
type lane struct {
	config kind.Config
	suite  bool
	chosen []kindtarget.Experiment
}

// secondSuffix is what the name of the second cluster ends in.
const secondSuffix = "-second"

// lanes shares the work between two clusters, if both have something to do.
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

// fitting is lanes, or all in one where this machine has too little for two.
func (o options) fitting(ctx context.Context, chosen []kindtarget.Experiment) ([]lane, error) {
	s, err := scenario.Lookup(o.scenario)
	if err != nil {
		return nil, err //nolint:wrapcheck // says it all
	}
	lanes := o.lanes(chosen)
	if len(lanes) == 1 {
		return lanes, nil // it is looked at when the cluster is made
	}
	var needed []kind.Config
	for _, l := range lanes {
		l.config.ControlPlanes, l.config.Workers = s.Masters, s.Day1Workers+s.Day2Workers
		needed = append(needed, l.config)
	}
	if slices.ContainsFunc(chosen, func(e kindtarget.Experiment) bool { return e.OwnCluster }) {
		needed = append(needed, kind.Config{Name: o.kind.Name + "-beside", ControlPlanes: beside})
	}
	err = kind.CheckPreconditions(ctx, needed...)
	if errors.Is(err, kind.ErrInsufficientResources) && !errors.Is(err, kind.ErrAlreadyExists) {
		o.told.say("All on one cluster, which takes longer: %v", err)
		o.one = true
		return o.lanes(chosen), nil
	}
	return lanes, err
}

// beside is how many nodes the cluster of an experiment of its own has at most.
const beside = 3
