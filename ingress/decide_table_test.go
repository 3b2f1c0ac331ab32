package ingress_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch"
)

// situation is what the decision over the default IngressController depends on.
type situation struct {
	controlPlane, infrastructure configv1.TopologyMode
	known, forced, optedOut      bool
	// placement is "none", "pinned", "moved" or "unreadable", and placedBy who owns it; replicas is 0 for unset.
	placement, placedBy string
	replicas            int32
	countedBy           string
}

func (s situation) inputs(t *testing.T) ingress.Inputs {
	t.Helper()
	var change []func(*operatorv1.IngressController)
	switch s.placement {
	case "pinned":
		change = append(change, placed(pinned(t)))
	case "moved":
		change = append(change, placed(moved()))
	case "unreadable":
		change = append(change, labelled(expressing("a", "Exists")))
	}
	if s.placement != "none" {
		change = append(change, ownedBy(s.placedBy, placedJSON))
	}
	if s.replicas > 0 {
		change = append(change, replicas(s.replicas), ownedBy(s.countedBy, replicasJSON))
	}
	if s.optedOut {
		change = append(change, annotated(patch.OptOutAnnotation, "ingress"))
	}
	in := inputs(s.controlPlane, s.infrastructure, change...)
	in.ForceConflicts = s.forced
	if !s.known {
		in.Cluster = nil
	}
	return in
}

// The whole decision over every combination of what it depends on, against the rule in other words: the first row that fits decides.
func TestDecideTable(t *testing.T) {
	const own, person, stock = "sno.solonode.github.io/ingress", "oc", "cluster-ingress-operator"
	const nothing, placement, both, release = "nothing", "placement", "placement and replicas", "release"
	one := func(s situation) int32 {
		if s.controlPlane == sr {
			return 1
		}
		return 2
	}
	rows := []struct {
		when func(situation) bool
		then string
		why  string
	}{
		{func(s situation) bool { return s.optedOut }, release, "a person keeps the module away"},
		{func(s situation) bool { return !s.known }, nothing, "nobody knows the topology"},
		{func(s situation) bool { return s.controlPlane == external }, release, "there is no control plane to pin to"},
		{func(s situation) bool { return s.infrastructure != sr }, release, "the router belongs to the workers"},
		{func(s situation) bool { return !s.forced && s.placement == "unreadable" && s.placedBy != own }, nothing, "nobody can follow that placement"},
		{func(s situation) bool { return !s.forced && s.placement == "moved" && s.placedBy != own }, release, "somebody else placed the router"},
		{func(s situation) bool {
			return !s.forced && s.replicas > 0 && s.replicas != one(s) && s.countedBy == person
		}, placement, "a person's number stays"},
		{func(situation) bool { return true }, both, "pin it"},
	}
	used := make([]bool, len(rows))
	var tried int
	for _, controlPlane := range allModes {
		for _, infrastructure := range allModes {
			for bits := range 8 {
				for _, what := range []string{"none", "pinned", "moved", "unreadable"} {
					for _, by := range []string{own, person, stock} {
						for _, number := range []int32{0, 1, 2, 3} {
							for _, counted := range []string{own, person, stock, own + "-released"} {
								s := situation{
									controlPlane: controlPlane, infrastructure: infrastructure, known: bits&1 == 0, forced: bits&2 != 0, optedOut: bits&4 != 0,
									placement: what, placedBy: by, replicas: number, countedBy: counted,
								}
								decision := ingress.Decide(s.inputs(t))
								got := nothing
								switch {
								case decision.Intent != nil && decision.Release:
									got = "an intent and a release"
								case decision.Release:
									got = release
								case decision.Intent != nil && decision.Intent.Spec.Replicas != nil && *decision.Intent.Spec.Replicas == one(s):
									got = both
								case decision.Intent != nil && decision.Intent.Spec.Replicas != nil:
									got = "another number"
								case decision.Intent != nil:
									got = placement
								}
								for i, row := range rows {
									if !row.when(s) {
										continue
									}
									if used[i] = true; got != row.then {
										t.Errorf("%+v: %s, want %s (%s); %v", s, got, row.then, row.why, decision.Result)
									}
									break
								}
								tried++
							}
						}
					}
				}
			}
		}
	}
	for i, row := range rows {
		if !used[i] {
			t.Errorf("no situation is of the row %q", row.why)
		}
	}
	if tried != 7*7*8*4*3*4*4 {
		t.Errorf("%d situations were tried", tried)
	}
}
