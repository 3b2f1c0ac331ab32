package etcdguard_test

import (
	"fmt"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch"
)

// Where the members are not needed they make no difference, whatever they are; where they are, they may.
func TestNeedsMembers(t *testing.T) {
	needed, not := 0, 0
	for _, mode := range allModes {
		for n := range 6 {
			for name, change := range map[string]func(*etcdguard.Inputs){
				"static": func(*etcdguard.Inputs) {},
				"ours": func(in *etcdguard.Inputs) {
					in.Deployment, in.Budget = ourGuard(t, ha, 5), ourBudget(t, ha, 5)
					in.ClusterVersion = claimed()
				},
				"none":        func(in *etcdguard.Inputs) { in.Deployment, in.Budget = nil, nil },
				"half":        func(in *etcdguard.Inputs) { in.Deployment = nil },
				"no topology": func(in *etcdguard.Inputs) { in.Cluster = nil },
				"operator": func(in *etcdguard.Inputs) {
					in.PodsBudget = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "etcd-guard-pdb"}}
				},
			} {
				in := of(mode, n, change)
				in.Members = nil
				if in.NeedsMembers() {
					needed++
					continue
				}
				not++
				want := text(t, etcdguard.Decide(in))
				for members := range 6 {
					in.Members = membersOf(members, members/2+1)
					if got := text(t, etcdguard.Decide(in)); got != want {
						t.Errorf("%s, %d nodes, %s: with %d members it decides\n%s\nand without\n%s", mode, n, name, members, got, want)
					}
				}
			}
		}
	}
	if needed == 0 || not == 0 {
		t.Errorf("needed %d times, not needed %d times", needed, not)
	}
}

// Where there is to be no guard, nodes make no difference, not even that they were not read.
func TestNeedsNodes(t *testing.T) {
	needed, not := 0, 0
	for _, mode := range allModes {
		for _, in := range []etcdguard.Inputs{
			of(mode, 3),
			of(mode, 3, func(in *etcdguard.Inputs) { in.Deployment, in.Budget = nil, nil }),
			of(mode, 3, func(in *etcdguard.Inputs) {
				in.Deployment, in.Budget = ourGuard(t, ha, 5), ourBudget(t, ha, 5)
				in.ClusterVersion = claimed()
			}),
			of(mode, 3, func(in *etcdguard.Inputs) { in.Cluster = nil }),
		} {
			if in.NeedsNodes() {
				needed++
				continue
			}
			not++
			want := text(t, etcdguard.Decide(in))
			for _, nodes := range []etcdguard.Inputs{{}, of(mode, 0), of(mode, 1), of(mode, 5)} {
				in.Nodes = nodes.Nodes
				if got := text(t, etcdguard.Decide(in)); got != want {
					t.Errorf("%s: with %d nodes it decides\n%s\nand else\n%s", mode, len(in.Nodes), got, want)
				}
				if in.AsksAgain(patch.Result{State: patch.Progressing}) {
					t.Errorf("%s: with %d nodes it asks again", mode, len(in.Nodes))
				}
			}
		}
	}
	if needed == 0 || not == 0 {
		t.Errorf("needed %d times, not needed %d times", needed, not)
	}
}

func TestAsksAgain(t *testing.T) {
	for name, test := range map[string]struct {
		in   etcdguard.Inputs
		want bool
	}{
		"at rest": {of(ha, 3), false},
		"ours at rest": {of(ha, 5, func(in *etcdguard.Inputs) {
			in.Deployment, in.Budget = ourGuard(t, ha, 5), ourBudget(t, ha, 5)
			in.ClusterVersion = claimed()
		}), false},
		"one is down, and nothing to loosen": {of(ha, 3, func(in *etcdguard.Inputs) { in.Members = membersOf(3, 2) }), false},
		"not known":                          {of(ha, 3, func(in *etcdguard.Inputs) { in.Members = nil }), true},
		"more than nodes":                    {of(ha, 3, func(in *etcdguard.Inputs) { in.Members = membersOf(4, 4) }), true},
		"fewer than nodes":                   {of(ha, 5, func(in *etcdguard.Inputs) { in.Members = membersOf(3, 3) }), false},
		"waits for healthy ones": {of(ha, 3, func(in *etcdguard.Inputs) {
			in.Deployment, in.Budget = ourGuard(t, ha, 5), ourBudget(t, ha, 5)
			in.Members = membersOf(3, 2)
		}), true},
		"one node, still three":   {of(sr, 1, func(in *etcdguard.Inputs) { in.Members = membersOf(3, 3) }), true},
		"one node, not known":     {of(sr, 1, func(in *etcdguard.Inputs) { in.Members = nil }), true},
		"one node, nothing there": {of(sr, 1, func(in *etcdguard.Inputs) { in.Deployment, in.Budget, in.Members = nil, nil, nil }), false},
		"opted out": {of(ha, 3, func(in *etcdguard.Inputs) {
			in.Members = nil
			in.Deployment.Annotations = map[string]string{"sno.solonode.github.io/opt-out": "etcdguard"}
		}), false},
		"external": {of(external, 0, func(in *etcdguard.Inputs) { in.Members = nil }), false},
	} {
		decision := etcdguard.Decide(test.in)
		result := patch.Result{State: patch.Progressing, Reason: etcdguard.ReasonRollingOut}
		if decision.Result != nil {
			result = *decision.Result
		}
		if got := test.in.AsksAgain(result); got != test.want {
			t.Errorf("%s: %t, %s", name, got, fmt.Sprint(result))
		}
	}
}
