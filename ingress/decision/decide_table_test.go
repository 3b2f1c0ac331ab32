// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/ingress/decision"
	"github.com/solonode/sno/ingress/internal/fixture"
	"github.com/solonode/sno/topology/topologytest"
)

type situation struct {
	controlPlane, infrastructure configv1.TopologyMode
	known, forced, optedOut      bool
	// placement is "none", "pinned", "moved" or "unreadable"; replicas is 0 for unset.
	placement, placementOwner string
	replicas                  int32
	replicasOwner             string
}

func situations() []situation {
	var all []situation
	for _, controlPlane := range topologytest.AllModes {
		for _, infrastructure := range topologytest.AllModes {
			for bits := range 8 {
				for _, placement := range []string{"none", "pinned", "moved", "unreadable"} {
					for _, placementOwner := range []string{own, "oc", stock} {
						for replicas := range int32(4) {
							for _, replicasOwner := range []string{own, "oc", stock, released} {
								all = append(all, situation{
									controlPlane, infrastructure, bits&1 == 0, bits&2 != 0, bits&4 != 0, placement, placementOwner, replicas, replicasOwner,
								})
							}
						}
					}
				}
			}
		}
	}
	return all
}

func (s situation) inputs(t *testing.T) decision.Inputs {
	t.Helper()
	var change []func(*operatorv1.IngressController)
	switch s.placement {
	case "pinned":
		change = append(change, fixture.Placed(fixture.Pinned(t)))
	case "moved":
		change = append(change, fixture.Placed(fixture.Moved()))
	case "unreadable":
		change = append(change, fixture.Labelled(fixture.Expressing("a", "Exists")))
	}
	if s.placement != "none" {
		change = append(change, ownedBy(s.placementOwner, placedJSON))
	}
	if s.replicas > 0 {
		change = append(change, fixture.Replicas(s.replicas), ownedBy(s.replicasOwner, replicasJSON))
	}
	if s.optedOut {
		change = append(change, optedOutOf("ingress"))
	}
	in := inputs(s.controlPlane, s.infrastructure, change...)
	in.ForceConflicts = s.forced
	if !s.known {
		in.Cluster = nil
	}
	return in
}

// The first rule that matches a situation decides.
func TestDecideTable(t *testing.T) {
	one := func(s situation) int32 {
		if s.controlPlane == topologytest.SR {
			return 1
		}
		return 2
	}
	rules := []struct {
		when func(situation) bool
		then string
		why  string
	}{
		{func(s situation) bool { return s.optedOut }, "release", "a person opted out"},
		{func(s situation) bool { return !s.known }, "nothing", "the topology is not known"},
		{func(s situation) bool { return s.controlPlane == topologytest.External }, "release", "there is no control plane to pin to"},
		{func(s situation) bool { return s.infrastructure != topologytest.SR }, "release", "the router belongs to the workers"},
		{func(s situation) bool { return !s.forced && s.placement == "unreadable" && s.placementOwner != own }, "nothing", "unsupported node selector"},
		{func(s situation) bool { return !s.forced && s.placement == "moved" && s.placementOwner != own }, "release", "another client placed the router"},
		{func(s situation) bool {
			return !s.forced && s.replicas > 0 && s.replicas != one(s) && s.replicasOwner == "oc"
		}, "placed", "a person's number stays"},
		{func(s situation) bool { return one(s) == 1 }, "1 pinned", "one control-plane node"},
		{func(situation) bool { return true }, "2 pinned", "several control-plane nodes"},
	}
	used := make([]bool, len(rules))
	all := situations()
	for _, s := range all {
		got := "nothing"
		switch d := decision.Decide(s.inputs(t)).IngressController; { // decide is slow
		case d.Intent != nil && d.Release:
			got = "an intent and a release"
		case d.Release:
			got = "release"
		case d.Intent != nil && specOf(d).Replicas == nil:
			got = "placed"
		case d.Intent != nil:
			got = fmt.Sprint(*specOf(d).Replicas, " pinned")
		}
		for i, rule := range rules {
			if rule.when(s) {
				if used[i] = true; got != rule.then {
					t.Errorf("%+v: %s, want %s (%s)", s, got, rule.then, rule.why)
				}
				break
			}
		}
	}
	for i, rule := range rules {
		if !used[i] {
			t.Errorf("no situation matches the rule %q", rule.why)
		}
	}
	if len(all) != 7*7*8*4*3*4*4 {
		t.Errorf("%d situations", len(all))
	}
}
