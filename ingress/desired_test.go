package ingress_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
)

// decided is a Decision as text.
type decided struct {
	Intent        string
	Release       bool
	Leave         string
	State, Reason string
}

func decide(t testing.TB, in ingress.Inputs) decided {
	t.Helper()
	d := ingress.Decide(in)
	out := decided{Release: d.Release}
	for _, left := range d.Leave {
		out.Leave += left.Field + "=" + string(left.Value) + " by " + left.Manager
	}
	if d.Intent != nil {
		out.Intent = text(t, d.Intent)
	}
	if d.Result != nil {
		out.State, out.Reason = d.Result.State.String(), d.Result.Reason
	}
	return out
}

// TestDecideTopologies shows R-ING-3 and R-ING-5, over all topologies, default placements and sources: pinned to the
// control plane or released, with as many routers as the control plane has nodes for.
func TestDecideTopologies(t *testing.T) {
	eachPool(func(controlPlane, infrastructure configv1.TopologyMode, def configv1.DefaultPlacement, source ingress.PlacementSource, pool topology.Pool, _ bool) {
		in := withDefaultPlacement(inputs(controlPlane, infrastructure), def)
		in.Placement = source
		want := decided{Release: true, State: "NotNeeded", Reason: "NotNeeded"}
		switch {
		case controlPlane == external:
			want.Reason = "ExternalControlPlane"
		case pool == topology.ControlPlanePool && controlPlane == sr:
			want = decided{Intent: onePinned}
		case pool == topology.ControlPlanePool:
			want = decided{Intent: twoPinned}
		}
		if diff := cmp.Diff(want, decide(t, in)); diff != "" {
			t.Errorf("control plane %q, infrastructure %q, default placement %q, --placement=%q (-want +got):\n%s", controlPlane, infrastructure, def, source, diff)
		}
	})
}

// TestDecide shows R-ING-4, R-SNO-5 and R-SNO-6 object by object: what a person placed or scaled stays, and what is
// released is what fits.
func TestDecide(t *testing.T) {
	const stock, own = "cluster-ingress-operator", "sno.solonode.github.io/ingress"
	if ingress.FieldOwner != own {
		t.Fatalf("the field owner is %q; it must stay %q, or what older versions wrote is orphaned", ingress.FieldOwner, own)
	}
	optedOut := annotated(patch.OptOutAnnotation, "all")
	change := func(in ingress.Inputs, f func(*ingress.Inputs)) ingress.Inputs { f(&in); return in }
	noCluster := func(in *ingress.Inputs) { in.Cluster = nil }
	forced := func(in *ingress.Inputs) { in.ForceConflicts = true }
	ours := []func(*operatorv1.IngressController){replicas(1), placed(pinned(t)), ownedBy(own, bothJSON)}
	oursAnd := func(more ...func(*operatorv1.IngressController)) []func(*operatorv1.IngressController) {
		return append(append([]func(*operatorv1.IngressController){}, ours...), more...)
	}

	const leftTwo = ".spec.replicas=2 by " + own + "-released"
	remembering := func(manager, value string) func(*operatorv1.IngressController) {
		return func(ic *operatorv1.IngressController) {
			if ic.Annotations == nil {
				ic.Annotations = map[string]string{}
			}
			ic.Annotations["sno.solonode.github.io/ingress-replaced"] = `[{"field":".spec.replicas","manager":"` + manager + `","value":` + value + `}]`
		}
	}

	for name, test := range map[string]struct {
		in   ingress.Inputs
		want decided
	}{
		"pinned": {inputs(sr, sr), decided{Intent: onePinned}},
		"pinned, two control-plane nodes by an old defaulting rule": {inputs(dual, sr), decided{Intent: twoPinned}},
		"again": {inputs(sr, sr, ours...), decided{Intent: onePinned}},
		"the operator's creation-time replicas are taken over": {
			inputs(sr, sr, replicas(2), ownedBy(stock, replicasJSON)), decided{Intent: onePinned}},
		"the same under the program's other name": {
			inputs(sr, sr, replicas(2), ownedBy("ingress-operator", replicasJSON)), decided{Intent: onePinned}},
		"a person's pin in other words is co-owned": {
			inputs(sr, sr, placed(pinnedByExpression(t)), ownedBy("oc", placedJSON)), decided{Intent: pinnedInOtherWords}},
		"another expression of our own is replaced": {
			inputs(sr, sr, labelled(expressing("node-role.kubernetes.io/infra", metav1.LabelSelectorOpIn, "")), ownedBy(own, bothJSON)), decided{Intent: onePinned}},
		"a placement that no operator can follow: nothing changes": {
			inputs(sr, sr, labelled(expressing("a", metav1.LabelSelectorOpExists)), ownedBy("oc", placedJSON)), decided{State: "Failed", Reason: "Invalid"}},
		"the same, forced": {
			change(inputs(sr, sr, labelled(expressing("a", metav1.LabelSelectorOpExists)), ownedBy("oc", placedJSON)), forced), decided{Intent: onePinned}},
		"a person's equal replicas are co-owned": {
			inputs(sr, sr, replicas(1), ownedBy("oc", replicasJSON)), decided{Intent: onePinned}},
		"a person's replicas stay, the placement is set": {
			inputs(sr, sr, replicas(3), ownedBy("oc", replicasJSON)),
			decided{Intent: onlyPlaced, State: "Blocked", Reason: "FieldOwnedByOther"}},
		"a person's replicas beside the operator's": {
			inputs(sr, sr, replicas(3), ownedBy(stock, replicasJSON), ownedBy("kubectl-edit", replicasJSON)),
			decided{Intent: onlyPlaced, State: "Blocked", Reason: "FieldOwnedByOther"}},
		"a person's replicas of zero stay": {
			inputs(sr, sr, replicas(0), ownedBy("oc", replicasJSON)),
			decided{Intent: onlyPlaced, State: "Blocked", Reason: "FieldOwnedByOther"}},
		"replicas that nobody signed stay": {
			inputs(sr, sr, replicas(3), func(ic *operatorv1.IngressController) { ic.ManagedFields = nil }),
			decided{Intent: onlyPlaced, State: "Blocked", Reason: "FieldOwnedByOther"}},
		"a person's replicas, forced": {
			change(inputs(sr, sr, replicas(3), ownedBy("oc", replicasJSON)), forced), decided{Intent: onePinned}},
		"a person's placement: everything goes back": {
			inputs(sr, sr, replicas(1), placed(moved()), ownedBy("oc", placedJSON), ownedBy(own, replicasJSON)),
			decided{Release: true, State: "Blocked", Reason: "FieldOwnedByOther"}},
		"a person's placement, forced": {
			change(inputs(sr, sr, placed(moved()), ownedBy("oc", placedJSON)), forced), decided{Intent: onePinned}},
		"opted out": {inputs(sr, sr, oursAnd(optedOut)...), decided{Release: true, State: "OptedOut", Reason: "OptedOut"}},
		"opted out, and the topology changed": {
			inputs(ha, ha, oursAnd(optedOut, ownedBy(stock, replicasJSON))...), decided{Release: true, State: "OptedOut", Reason: "OptedOut"}},
		"lets go, and leaves the replicas that fit": {
			inputs(ha, ha, oursAnd(ownedBy(stock, replicasJSON))...),
			decided{Release: true, Leave: leftTwo, State: "NotNeeded", Reason: "NotNeeded"}},
		"lets go of an external control plane": {
			inputs(external, ha, oursAnd(ownedBy(stock, replicasJSON))...),
			decided{Release: true, Leave: leftTwo, State: "NotNeeded", Reason: "ExternalControlPlane"}},
		"lets go of a number that nobody else had": {
			inputs(ha, ha, oursAnd()...), decided{Release: true, State: "NotNeeded", Reason: "NotNeeded"}},
		"lets go of a number that a person has too": {
			inputs(ha, ha, oursAnd(ownedBy(stock, replicasJSON), ownedBy("oc", replicasJSON))...),
			decided{Release: true, State: "NotNeeded", Reason: "NotNeeded"}},
		"lets go, and the operator's own number fits": {
			inputs(ha, ha, oursAnd(remembering(stock, "2"))...), decided{Release: true, State: "NotNeeded", Reason: "NotNeeded"}},
		"lets go, and the operator's own number does not fit": {
			inputs(ha, ha, oursAnd(remembering(stock, "1"))...), decided{Release: true, Leave: leftTwo, State: "NotNeeded", Reason: "NotNeeded"}},
		"lets go, and the operator pins the router to the only control-plane node": {
			withDefaultPlacement(inputs(sr, ha, oursAnd(ownedBy(stock, replicasJSON))...), configv1.DefaultPlacementControlPlane),
			decided{Release: true, State: "NotNeeded", Reason: "NotNeeded"}},
		"opted out, and the operator's own number goes back": {
			inputs(sr, sr, oursAnd(optedOut, remembering(stock, "2"))...), decided{Release: true, State: "OptedOut", Reason: "OptedOut"}},
		"opted out, and the number that was left behind does not fit any more": {
			inputs(sr, sr, oursAnd(optedOut, remembering(own+"-released", "2"))...),
			decided{Release: true, Leave: ".spec.replicas=1 by " + own + "-released", State: "OptedOut", Reason: "OptedOut"}},
		"opted out, and the number that was left behind is there and does not fit": {
			inputs(ha, ha, oursAnd(optedOut, ownedBy(own+"-released", replicasJSON))...),
			decided{Release: true, Leave: leftTwo, State: "OptedOut", Reason: "OptedOut"}},
		"opted out, and the topology is not known": {
			change(inputs(sr, sr, oursAnd(optedOut, remembering(own+"-released", "2"))...), noCluster),
			decided{Release: true, State: "OptedOut", Reason: "OptedOut"}},
		"lets go, and what is remembered is damaged": {
			inputs(ha, ha, oursAnd(annotated("sno.solonode.github.io/ingress-replaced", "{"))...), decided{Release: true, State: "NotNeeded", Reason: "NotNeeded"}},
		"a number that was left behind is taken over": {
			inputs(sr, sr, replicas(2), ownedBy(own+"-released", replicasJSON)), decided{Intent: onePinned}},
		"lets go, and the replicas fit": {
			change(withDefaultPlacement(inputs(sr, sr, oursAnd(ownedBy(stock, replicasJSON))...), configv1.DefaultPlacementWorkers),
				func(in *ingress.Inputs) { in.Placement = ingress.PlacementFromDefaultPlacement }),
			decided{Release: true, State: "NotNeeded", Reason: "NotNeeded"}},
		"never ours, so never unset": {
			inputs(ha, ha, replicas(1), ownedBy(stock, replicasJSON)), decided{Release: true, State: "NotNeeded", Reason: "NotNeeded"}},
		"unknown value of the enum acts as highly available": {
			inputs(unknown, unknown), decided{Release: true, State: "NotNeeded", Reason: "NotNeeded"}},
		"topology not known: nothing changes": {
			change(inputs(sr, sr, ours...), noCluster), decided{State: "Waiting", Reason: "WaitingForInfrastructure"}},
		"being deleted: nothing changes": {
			inputs(sr, sr, oursAnd(deleting)...), decided{State: "Waiting", Reason: "WaitingForObject"}},
		"gone: nothing changes": {
			change(inputs(sr, sr), func(in *ingress.Inputs) { in.IngressController = nil }), decided{State: "Waiting", Reason: "WaitingForObject"}},
		"another object: nothing changes": {
			inputs(sr, sr, func(ic *operatorv1.IngressController) { ic.Name = "internal" }), decided{State: "Failed", Reason: "Invalid"}},
		"unreadable ownership: nothing changes": {
			inputs(sr, sr, placed(moved()), ownedBy("oc", `{"f:spec":7}`)), decided{State: "Failed", Reason: "Invalid"}},
		"unreadable ownership of the replicas: nothing changes": {
			inputs(sr, sr, replicas(3), ownedBy("oc", `{"f:spec":7}`)), decided{State: "Failed", Reason: "Invalid"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, decide(t, test.in)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// A value that was taken by force goes back, unless the topology has made it wrong.
func TestKeepReplaced(t *testing.T) {
	one, two := patch.Replaced{Field: ".spec.replicas", Manager: "oc", Value: []byte("1")}, patch.Replaced{Field: ".spec.replicas", Manager: "oc", Value: []byte("2")}
	placement := patch.Replaced{Field: ".spec.nodePlacement.nodeSelector", Manager: "oc", Value: []byte("1")}

	letGo := ingress.Decide(inputs(ha, ha))
	for replaced, want := range map[*patch.Replaced]bool{&one: false, &two: true, &placement: true} {
		if got := letGo.KeepReplaced(*replaced); got != want {
			t.Errorf("highly available, %s %s: restored %v, want %v", replaced.Field, replaced.Value, got, want)
		}
	}
	workers := withDefaultPlacement(inputs(sr, sr), configv1.DefaultPlacementWorkers)
	workers.Placement = ingress.PlacementFromDefaultPlacement
	single := ingress.Decide(workers)
	for replaced, want := range map[*patch.Replaced]bool{&one: true, &two: false} {
		if got := single.KeepReplaced(*replaced); got != want {
			t.Errorf("single replica, %s %s: restored %v, want %v", replaced.Field, replaced.Value, got, want)
		}
	}
	optedOut := ingress.Decide(inputs(sr, sr, annotated(patch.OptOutAnnotation, "ingress")))
	left := func(value string) *patch.Replaced {
		return &patch.Replaced{Field: ".spec.replicas", Manager: ingress.FieldOwner + "-released", Value: []byte(value)}
	}
	for replaced, want := range map[*patch.Replaced]bool{&one: true, &two: true, &placement: true, left("1"): true, left("2"): false} {
		if got := optedOut.KeepReplaced(*replaced); got != want {
			t.Errorf("opted out, %s %s of %s: restored %v, want %v", replaced.Field, replaced.Value, replaced.Manager, got, want)
		}
	}
}

func TestDecideIsPure(t *testing.T) {
	for name, build := range map[string]func() ingress.Inputs{
		"pins": func() ingress.Inputs {
			return inputs(sr, sr, replicas(2), ownedBy("cluster-ingress-operator", replicasJSON))
		},
		"lets go": func() ingress.Inputs {
			return inputs(ha, ha, replicas(1), placed(pinned(t)), ownedBy(ingress.FieldOwner, bothJSON))
		},
		"is blocked": func() ingress.Inputs { return inputs(sr, sr, placed(moved()), ownedBy("oc", placedJSON)) },
	} {
		t.Run(name, func(t *testing.T) {
			in := build()
			first, second := ingress.Decide(in), ingress.Decide(in)
			if diff := cmp.Diff(build(), in); diff != "" {
				t.Errorf("the inputs were changed (-before +after):\n%s", diff)
			}
			want := text(t, second.Intent)
			if got := text(t, first.Intent); got != want {
				t.Errorf("two calls, two intents:\n%s\n%s", got, want)
			}
			if first.Intent == nil {
				return
			}
			if first.Intent == second.Intent {
				t.Fatal("two calls gave the same intent; one that was sent must never be sent again")
			}
			// What an API server's answer does to an intent must not reach the next one.
			placement := first.Intent.Spec.NodePlacement
			placement.NodeSelector.MatchLabels["added"] = "x"
			placement.Tolerations[0].Key = "changed"
			first.Intent.Spec.WithReplicas(9)
			if got := text(t, second.Intent); got != want {
				t.Errorf("changing one intent changed another:\n%s\n%s", got, want)
			}
			if got := text(t, ingress.Decide(in).Intent); got != want {
				t.Errorf("changing one intent changed a later one:\n%s\n%s", got, want)
			}
		})
	}
}

func BenchmarkDecide(b *testing.B) {
	for name, in := range map[string]ingress.Inputs{
		"pins":    inputs(sr, sr, replicas(1), placed(pinned(b)), ownedBy(ingress.FieldOwner, bothJSON)),
		"lets-go": inputs(ha, ha),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ingress.Decide(in)
			}
		})
	}
}
