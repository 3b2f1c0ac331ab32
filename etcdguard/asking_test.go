package etcdguard_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
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

// Nodes of other roles make no difference, and where none count not even that they were not read.
func TestNodeRoles(t *testing.T) {
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
			want, again := text(t, etcdguard.Decide(in)), in.AsksAgain(patch.Result{State: patch.Progressing})
			roles := in.NodeRoles()
			others := [][]corev1.Node{nil, {}, of(mode, 1).Nodes, of(mode, 5).Nodes}
			if len(roles) > 0 {
				needed++
				others = nil
				for _, role := range []string{"worker", etcdguard.ArbiterRole} {
					if !slices.Contains(roles, role) {
						others = append(others, append(slices.Clone(in.Nodes), corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: role, Labels: map[string]string{role: ""}}}))
					}
				}
			} else {
				not++
			}
			for _, nodes := range others {
				in.Nodes = nodes
				if got := text(t, etcdguard.Decide(in)); got != want {
					t.Errorf("%s, %v: with %d nodes it decides\n%s\nand else\n%s", mode, roles, len(in.Nodes), got, want)
				}
				if in.AsksAgain(patch.Result{State: patch.Progressing}) != again {
					t.Errorf("%s, %v: whether it asks again depends on the %d nodes", mode, roles, len(in.Nodes))
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
