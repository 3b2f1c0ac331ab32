package etcdguard_test

import (
	"fmt"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch"
)

// The tests of this file state the decision a second time, as tables, and compare over all combinations of what counts.

// half is one part of a guard that somebody else wrote: gone, going or there.
type half string

const (
	isGone  half = "gone"
	isGoing half = "going"
	isThere half = "there"
)

// numbers are the ways in which a budget can say how many of n guards must stay.
var numbers = map[string]struct {
	set  func(*policyv1.PodDisruptionBudgetSpec)
	stay func(n int) int
}{
	"maxUnavailable 0":   {setMax(intstr.FromInt32(0)), func(n int) int { return n }},
	"maxUnavailable 1":   {setMax(intstr.FromInt32(1)), func(n int) int { return n - 1 }},
	"maxUnavailable 2":   {setMax(intstr.FromInt32(2)), func(n int) int { return n - 2 }},
	"maxUnavailable 34%": {setMax(intstr.FromString("34%")), func(n int) int { return map[int]int{2: 1, 3: 1, 4: 2, 5: 3}[n] }}, // rounded up
	"maxUnavailable x":   {setMax(intstr.FromString("x")), func(int) int { return 0 }},
	"minAvailable 2":     {setMin(intstr.FromInt32(2)), func(int) int { return 2 }},
	"minAvailable 51%":   {setMin(intstr.FromString("51%")), func(n int) int { return map[int]int{2: 2, 3: 2, 4: 3, 5: 3}[n] }},
	"minAvailable x":     {setMin(intstr.FromString("x")), func(int) int { return 0 }},
}

func setMax(n intstr.IntOrString) func(*policyv1.PodDisruptionBudgetSpec) {
	return func(spec *policyv1.PodDisruptionBudgetSpec) { spec.MaxUnavailable, spec.MinAvailable = ptr.To(n), nil }
}

func setMin(n intstr.IntOrString) func(*policyv1.PodDisruptionBudgetSpec) {
	return func(spec *policyv1.PodDisruptionBudgetSpec) { spec.MaxUnavailable, spec.MinAvailable = nil, ptr.To(n) }
}

// selectors are those that a budget can have, and whether they are about the guards and nothing else.
var selectors = map[string]struct {
	selector *metav1.LabelSelector
	right    bool
}{
	"by label":      {&metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "etcd-quorum-guard"}}, true},
	"by expression": {chosen(metav1.LabelSelectorOpIn, "etcd-quorum-guard", "x"), true},
	"none":          {nil, false},
	"empty":         {&metav1.LabelSelector{}, false}, // every pod of the namespace
	"of others":     {&metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "etcd"}}, false},
	"excluding":     {chosen(metav1.LabelSelectorOpNotIn, "etcd-quorum-guard"), false},
	"unreadable":    {chosen("Near", "etcd-quorum-guard"), false},
}

func chosen(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k8s-app", Operator: operator, Values: values}}}
}

// policies are those of a budget for pods that are not ready, and whether they let a node go whose etcd is down for a moment.
var policies = map[policyv1.UnhealthyPodEvictionPolicyType]bool{"": false, policyv1.IfHealthyBudget: false, policyv1.AlwaysAllow: true}

// found is one guard that an earlier etcd operator wrote, in a cluster of n members.
type found struct {
	mode configv1.TopologyMode
	n    int

	deployment       half
	replicas         int
	pinned, unprobed bool

	budget           half
	number, selector string
	policy           policyv1.UnhealthyPodEvictionPolicyType
}

// wrong is the second statement: what to say about a guard, in order, and when.
var wrong = []struct {
	says string
	of   func(found) bool
}{
	{"has no Deployment", func(g found) bool { return g.deployment == isGone }},
	{"has a Deployment that is being deleted", func(g found) bool { return g.deployment == isGoing }},
	{"has another number of replicas than the cluster needs", func(g found) bool { return g.deployment != isGone && g.replicas != g.n }},
	{"does not run on the arbiter, whose member counts too", func(g found) bool { return g.deployment != isGone && g.pinned && g.mode == arbiter }},
	{"does not ask etcd for its health, for want of a readiness probe", func(g found) bool { return g.deployment != isGone && g.unprobed }},
	{"has no PodDisruptionBudget", func(g found) bool { return g.budget == isGone }},
	{"has a PodDisruptionBudget that is being deleted", func(g found) bool { return g.budget == isGoing }},
	{"has a PodDisruptionBudget that lets another number of guards go than etcd can spare", func(g found) bool {
		return g.budget != isGone && numbers[g.number].stay(g.n) != g.n-mayGo(g.mode, g.n)
	}},
	{"has a PodDisruptionBudget that lets a node go whose etcd is down for a moment", func(g found) bool { return g.budget != isGone && policies[g.policy] }},
	{"has a PodDisruptionBudget whose selector does not select its pods", func(g found) bool {
		return g.deployment != isGone && g.budget != isGone && !selectors[g.selector].right
	}},
}

func (g found) inputs() etcdguard.Inputs {
	in := of(g.mode, g.n)
	in.Deployment, in.Budget = nil, nil
	if g.deployment != isGone {
		in.Deployment = staticGuard(func(d *appsv1.Deployment) {
			d.ManagedFields = []metav1.ManagedFieldsEntry{entry(stock, replicasJSON)}
			d.Spec.Replicas = ptr.To(int32(g.replicas))
			d.Status.AvailableReplicas = int32(g.replicas)
			if !g.pinned {
				d.Spec.Template.Spec.NodeSelector = nil
			}
			if g.unprobed {
				d.Spec.Template.Spec.Containers[0].ReadinessProbe = nil
			}
			if g.deployment == isGoing {
				d.DeletionTimestamp = &metav1.Time{}
			}
		})
	}
	if g.budget != isGone {
		in.Budget = staticBudget(func(b *policyv1.PodDisruptionBudget) {
			b.ManagedFields = []metav1.ManagedFieldsEntry{entry(stock, `{"f:spec":{"f:maxUnavailable":{},"f:minAvailable":{}}}`)}
			numbers[g.number].set(&b.Spec)
			b.Spec.Selector = selectors[g.selector].selector
			if g.policy != "" {
				b.Spec.UnhealthyPodEvictionPolicy = ptr.To(g.policy)
			}
			if g.budget == isGoing {
				b.DeletionTimestamp = &metav1.Time{}
			}
		})
	}
	return in
}

// eachLive calls f with every guard that an earlier etcd operator can have left, of which at least one half is there.
func eachLive(f func(found)) {
	for mode, sizes := range map[configv1.TopologyMode][]int{ha: {3, 4, 5}, arbiter: {3, 5}, dual: {2, 3}} {
		for _, n := range sizes {
			at := found{mode: mode, n: n, replicas: n, pinned: mode != arbiter, number: "maxUnavailable 1", selector: "by label"}
			deployments := []found{at}
			deployments[0].deployment = isGone
			for _, there := range []half{isThere, isGoing} {
				for replicas := n - 1; replicas <= n+1; replicas++ {
					for flags := range 4 {
						g := at
						g.deployment, g.replicas, g.pinned, g.unprobed = there, replicas, flags&1 != 0, flags&2 != 0
						deployments = append(deployments, g)
					}
				}
			}
			for _, g := range deployments {
				if g.deployment != isGone {
					gone := g
					gone.budget = isGone
					f(gone)
				}
				for number := range numbers {
					for selector := range selectors {
						for policy := range policies {
							g.budget, g.number, g.selector, g.policy = isThere, number, selector, policy
							f(g)
						}
					}
				}
				g.budget, g.number, g.selector, g.policy = isGoing, "maxUnavailable 1", "by label", ""
				f(g)
			}
		}
	}
}

// A guard that somebody else wrote is right, or everything that is wrong with it is said.
func TestFaults(t *testing.T) {
	right := 0
	eachLive(func(g found) {
		var faults []string
		for _, w := range wrong {
			if w.of(g) {
				faults = append(faults, w.says)
			}
		}
		d := etcdguard.Decide(g.inputs())
		if len(faults) == 0 {
			right++
			if d.Action != etcdguard.Nothing || d.Result.State != patch.NotNeeded {
				t.Errorf("%+v is right: %s %s", g, d.Action, d.Result)
			}
			return
		}
		says := faults[len(faults)-1]
		if len(faults) > 1 {
			says = strings.Join(faults[:len(faults)-1], ", ") + " and " + says
		}
		says = `"cluster-etcd-operator" and ` + says + "; see whether that operator runs"
		if d.Action != etcdguard.Nothing || d.Result.State != patch.Blocked || !strings.Contains(d.Result.Message, says) {
			t.Errorf("%+v: %s %s\nwant %s", g, d.Action, d.Result, says)
		}
	})
	if right < 50 {
		t.Errorf("only %d guards are right", right)
	}
}

// written is a part of the guard as the next test has it: gone, the release's, or ours, and its number.
type written struct {
	by string
	n  int
}

const byRelease, byUs = "release", "us"

// nextWrite is the second statement of what to do in a cluster of n members in which the cluster-version-operator keeps away.
func nextWrite(mode configv1.TopologyMode, n int, known bool, d, b written) string {
	spare := mayGo(mode, n)
	stay := func(replicas, maxUnavailable int) int { return max(replicas-maxUnavailable, 0) }
	both := d.by != "" && b.by != ""
	dRight, bRight := d == written{byUs, n}, b == written{byUs, spare}
	fits := both && d.n == n && b.n == spare && (mode != arbiter || d.by == byUs)
	budget, deployment := "ApplyBudget", "ApplyDeployment"
	switch {
	case both && stay(d.n, b.n) > n-spare && !known:
		return "Nothing" // it would be looser, and nobody knows whether etcd can spare that
	case fits && n == 3 && mode != arbiter && d.by == byUs:
		return "DisownDeployment" // the release's guard is right here
	case fits && n == 3 && mode != arbiter && b.by == byUs:
		return "DisownBudget"
	case fits && n == 3 && mode != arbiter:
		return "Unclaim"
	case dRight && bRight:
		return "Nothing"
	case bRight:
		return deployment
	case dRight:
		return budget
	case both && stay(n, b.n) > stay(d.n, spare):
		return deployment // that leaves more in between
	case both, d.by == "", d.n >= n:
		return budget
	}
	return deployment // a budget of the new size over fewer guards would keep fewer
}

func TestNextWrite(t *testing.T) {
	for mode, sizes := range map[configv1.TopologyMode][]int{ha: {3, 4, 5, 6}, arbiter: {3, 4, 5}, dual: {2, 3, 4}} {
		for _, n := range sizes {
			eachWritten(6, func(d written) {
				eachWritten(3, func(b written) {
					for _, known := range []bool{true, false} {
						in := of(mode, n, func(in *etcdguard.Inputs) {
							in.ClusterVersion, in.Image = claimed(), "cli"
							in.Deployment, in.Budget = d.deployment(t, mode), b.disruptionBudget(t, mode)
							if !known {
								in.Members = nil
							}
						})
						decision := etcdguard.Decide(in)
						got := string(decision.Action)
						if got == "" {
							got = "Nothing"
						}
						if want := nextWrite(mode, n, known, d, b); got != want {
							t.Errorf("%q, %d members, known %t, Deployment %v, budget %v: %s, want %s", mode, n, known, d, b, said(t, decision), want)
						}
					}
				})
			})
		}
	}
}

func eachWritten(most int, f func(written)) {
	f(written{})
	for n := range most + 1 {
		f(written{byRelease, n})
		f(written{byUs, n})
	}
}

var made = map[string]any{}

// once keeps what is made for many combinations; nobody changes it.
func once[T any](key string, build func() T) T {
	if _, there := made[key]; !there {
		made[key] = build()
	}
	return made[key].(T)
}

func (w written) deployment(t *testing.T, mode configv1.TopologyMode) *appsv1.Deployment {
	t.Helper()
	replicas := func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(w.n)) }
	return once(fmt.Sprintf("%v of %q", w, mode), func() *appsv1.Deployment {
		switch w.by {
		case byRelease:
			return staticGuard(replicas)
		case byUs:
			return ourGuard(t, mode, 3, replicas)
		}
		return nil
	})
}

func (w written) disruptionBudget(t *testing.T, mode configv1.TopologyMode) *policyv1.PodDisruptionBudget {
	t.Helper()
	number := func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = ptr.To(intstr.FromInt(w.n)) }
	return once(fmt.Sprintf("budget %v of %q", w, mode), func() *policyv1.PodDisruptionBudget {
		switch w.by {
		case byRelease:
			return staticBudget(number)
		case byUs:
			return ourBudget(t, mode, 3, number)
		}
		return nil
	})
}
