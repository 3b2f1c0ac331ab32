package etcdguard_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/etcdguard"
)

// part is the guard's Deployment or its budget, as far as the hand-over is concerned.
type part struct {
	// n is the replicas or maxUnavailable; gone for no object.
	n int
	// form is whose template it has: static, or that of this module for ha or for arbiter.
	form string
	// ours is how much of it this module owns; release tells that the cluster-version-operator is a manager of it.
	ours    string
	release bool
	// scaled tells that a person set n, tagged that it has the annotations of a release.
	scaled, tagged bool
}

const (
	gone                    = -1
	none, partly, fully     = "", "partly", "fully"
	static                  = "static"
	ourEntries, oneOfTwo    = "ours", "half"
	theirEntries, contraryE = "theirs", "contrary"
	unread                  = configv1.TopologyMode("-")
)

// world is a cluster as far as the hand-over is concerned. Between any two writes of ours anything may happen: we may crash, and the
// cluster-version-operator acts by what it last saw of the ClusterVersion.
type world struct {
	mode configv1.TopologyMode
	// nodes with a role, members of etcd, those of them that are healthy, and whether the list of members can be read.
	nodes, members, healthy int
	listed                  bool
	// version tells whether there is a ClusterVersion, and with it a cluster-version-operator.
	version bool
	// entries are ours, half (one of our two), theirs (somebody else's with unmanaged: true), contrary (with false) or "".
	entries string
	// observed tells whether status.observedGeneration is up to date; handsOff is what the cluster-version-operator really does.
	observed, handsOff bool
	guard, budget      part
	image, optOut      bool
	// operator tells that today's etcd operator guards, so that no static manifest does.
	operator bool
}

var (
	missing     = part{n: gone}
	fromRelease = part{n: 3, form: static, release: true, tagged: true}
)

func (p part) managers(staticJSON, numberJSON, ourJSON string) []metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	if p.release && p.scaled {
		entries = append(entries, entry(cvo, `{"f:metadata":{"f:annotations":{}}}`))
	} else if p.release {
		entries = append(entries, entry(cvo, staticJSON))
	}
	switch p.ours {
	case fully:
		entries = append(entries, entry(us, ourJSON))
	case partly:
		entries = append(entries, entry(us, `{"f:metadata":{"f:labels":{}}}`))
	}
	if p.scaled {
		entries = append(entries, entry(person, numberJSON))
	}
	if len(entries) == 0 {
		entries = append(entries, entry("installer", `{"f:metadata":{"f:labels":{}}}`))
	}
	return entries
}

var (
	guards  = map[part]*appsv1.Deployment{}
	budgets = map[part]*policyv1.PodDisruptionBudget{}
)

func (p part) deployment(t testing.TB) *appsv1.Deployment {
	t.Helper()
	if d, made := guards[p]; made || p.n == gone {
		return d
	}
	d := staticGuard()
	ourJSON := ""
	if p.form != static {
		d = ourGuard(t, configv1.TopologyMode(p.form), 3)
		ourJSON = fieldsV1(t, d)
	}
	d.Spec.Replicas = ptr.To(int32(p.n))
	d.ManagedFields = p.managers(staticGuardJSON, replicasJSON, ourJSON)
	d.Annotations = nil
	if p.tagged {
		d.Annotations = staticGuard().Annotations
	}
	guards[p] = d
	return d
}

func (p part) disruptionBudget(t testing.TB) *policyv1.PodDisruptionBudget {
	t.Helper()
	if b, made := budgets[p]; made || p.n == gone {
		return b
	}
	b := staticBudget()
	ourJSON := ""
	if p.form != static {
		b = ourBudget(t, ha, 3)
		ourJSON = fieldsV1(t, b)
	}
	b.Spec.MaxUnavailable = ptr.To(intstr.FromInt(p.n))
	b.ManagedFields = p.managers(maxUnavailableJSON, maxUnavailableJSON, ourJSON)
	b.Annotations = nil
	if p.tagged {
		b.Annotations = staticBudget().Annotations
	}
	budgets[p] = b
	return b
}

func (w world) inputs(t testing.TB) etcdguard.Inputs {
	t.Helper()
	in := etcdguard.Inputs{
		Nodes: nodesOf(w.mode, w.nodes), Deployment: w.guard.deployment(t), Budget: w.budget.disruptionBudget(t),
		ClientSecret: etcdguard.Present, CABundle: etcdguard.Present,
	}
	if w.mode != unread {
		cluster := clusterOf(w.mode)
		in.Cluster = &cluster
	}
	if w.listed {
		in.Members = membersOf(w.members, w.healthy)
	}
	if w.image {
		in.Image = "cli"
	}
	if w.operator {
		in.PodsBudget = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "etcd-guard-pdb"}}
		in.PodsBudget.Status = policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 2, CurrentHealthy: 3, ExpectedPods: 3}
	}
	if w.version {
		switch w.entries {
		case none:
			in.ClusterVersion = version()
		case ourEntries:
			in.ClusterVersion = claimed()
		case oneOfTwo:
			in.ClusterVersion = signed(version(guardEntry("Deployment", true)), us, entriesJSON("Deployment"))
		case theirEntries:
			in.ClusterVersion = signed(version(bothEntries(true)...), person, entriesJSON("Deployment", "PodDisruptionBudget"))
		case contraryE:
			in.ClusterVersion = signed(version(guardEntry("PodDisruptionBudget", false)), person, entriesJSON("PodDisruptionBudget"))
		}
		if !w.observed {
			unobserved(in.ClusterVersion)
		}
		if w.optOut {
			in.ClusterVersion.Annotations = map[string]string{"sno.solonode.github.io/opt-out": "etcdguard"}
		}
	}
	return in
}

// size is how many guards the cluster needs, and need how many of them must stay, by the rules and not by the code.
func (w world) size() int {
	if !w.listed {
		return max(w.nodes, expected(w.mode))
	}
	return max(w.nodes, w.members, expected(w.mode))
}
func (w world) need() int { return w.size() - mayGo(w.mode, w.size()) }

// strength is how many members are sure to stay whatever is evicted, as long as all are healthy.
func (w world) strength() int {
	if w.guard.n == gone || w.budget.n == gone {
		return 0
	}
	return max(w.guard.n-w.budget.n, 0)
}

// writesStatic tells whether the cluster-version-operator may write the guard at this moment.
func (w world) writesStatic() bool { return w.version && !w.operator && !w.handsOff }

// step is the next write of ours, and the world after it. The problems are those of this one step.
type step struct {
	decision etcdguard.Decision
	after    world
	problems []string
}

// decided holds the steps of all walks: they meet the same worlds again and again.
var decided = map[world]step{}

func (w world) decide(t testing.TB) (etcdguard.Decision, world, []string) {
	t.Helper()
	if _, before := decided[w]; !before {
		decision, after, problems := w.decideAnew(t)
		decided[w] = step{decision, after, problems}
	}
	return decided[w].decision, decided[w].after, decided[w].problems
}

func (w world) decideAnew(t testing.TB) (decision etcdguard.Decision, after world, problems []string) {
	t.Helper()
	decision = etcdguard.Decide(w.inputs(t))
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	after = w
	form := string(ha)
	if w.mode == arbiter {
		form = string(arbiter)
	}
	writes := true
	switch decision.Action {
	case etcdguard.Nothing:
		return decision, w, nil
	case etcdguard.Claim:
		writes = false
		if w.entries != none && w.entries != oneOfTwo {
			problem("claims although the entries are %s", w.entries)
		}
		release := (w.guard.n != gone && w.guard.release) || (w.budget.n != gone && w.budget.release)
		if w.mode != arbiter && needsGuard(w.mode) && w.size() == 3 && release && w.entries == none && w.guard.ours == none && w.budget.ours == none {
			problem("blocks upgrades for what the cluster-version-operator mends by itself")
		}
		after.entries, after.observed = ourEntries, false
	case etcdguard.Unclaim:
		writes = false
		if w.guard.ours != none || w.budget.ours != none {
			problem("gives the entries back before the guard")
		}
		if needsGuard(w.mode) && !w.operator && !w.optOut && w.image && w.strength() < w.need() {
			problem("gives the entries back although the guard is too weak")
		}
		after.entries, after.observed = none, false
	case etcdguard.ApplyDeployment:
		after.guard = part{n: int(*decision.Deployment.Spec.Replicas), form: form, ours: fully, release: w.guard.release, tagged: w.guard.tagged, scaled: w.guard.scaled}
		if decision.Create != (w.guard.n == gone) || (w.guard.scaled && after.guard.n != w.guard.n) {
			problem("creates %t, or writes over a person", decision.Create)
		}
	case etcdguard.ApplyBudget:
		after.budget = part{n: decision.Budget.Spec.MaxUnavailable.IntValue(), form: string(ha), ours: fully, release: w.budget.release, tagged: w.budget.tagged, scaled: w.budget.scaled}
		if decision.Create != (w.budget.n == gone) || (w.budget.scaled && after.budget.n != w.budget.n) {
			problem("creates %t, or writes over a person", decision.Create)
		}
	case etcdguard.TidyDeployment:
		after.guard.tagged = false
	case etcdguard.TidyBudget:
		after.budget.tagged = false
	case etcdguard.DisownDeployment, etcdguard.DisownBudget:
		writes = false
		if decision.Action == etcdguard.DisownDeployment {
			after.guard.ours, after.guard.release = none, w.guard.release || decision.HandTo == cvo
		} else {
			after.budget.ours, after.budget.release = none, w.budget.release || decision.HandTo == cvo
		}
		if needsGuard(w.mode) && !w.operator && !w.optOut && w.entries != contraryE && w.image && w.strength() != w.need() {
			problem("gives back a guard that does not fit")
		}
	case etcdguard.DeleteBudget, etcdguard.DeleteDeployment:
		lone := w.mode == sr && w.listed && w.members <= 1
		yields := w.operator && needsGuard(w.mode) && (w.guard.ours != none || w.budget.ours != none)
		if !lone && !yields {
			problem("removes a guard that is needed")
		}
		if w.guard.scaled || w.budget.scaled {
			problem("removes what a person set")
		}
		if decision.Action == etcdguard.DeleteBudget {
			after.budget = missing
		} else {
			after.guard = missing
		}
	}
	if writes && w.writesStatic() {
		problem("writes beside the cluster-version-operator")
	}
	if w.mode == unread {
		problem("writes without knowing the topology")
	}
	if needsGuard(w.mode) && !w.operator {
		floor := min(w.strength(), w.need())
		if !w.listed || w.healthy < expected(w.mode) {
			floor = w.strength()
		}
		if after.strength() < floor {
			problem("%d members were sure to stay and then %d, of which %d are needed", w.strength(), after.strength(), w.need())
		}
	}
	return decision, after, problems
}

// next is decide for a walk that reports every problem.
func (w world) next(t testing.TB) (etcdguard.Action, world) {
	t.Helper()
	decision, after, problems := w.decide(t)
	for _, problem := range problems {
		t.Errorf("%+v: %s %s", w, decision.Action, problem)
	}
	if decision.Action != etcdguard.Nothing && after == w {
		t.Errorf("%+v: %s changes nothing", w, decision.Action)
	}
	return decision.Action, after
}

// theirs are the worlds after the cluster-version-operator did something: it sees the ClusterVersion, and unless that keeps it
// away it writes either part as its manifest has it, and makes it where it is missing.
func (w world) theirs() []world {
	var out []world
	if !w.version {
		return nil
	}
	seen := w
	seen.observed = true
	seen.handsOff = w.entries == ourEntries || w.entries == theirEntries
	if seen != w {
		out = append(out, seen)
	}
	if !w.writesStatic() {
		return out
	}
	for _, of := range []struct {
		at func(*world) *part
		n  int
	}{{func(w *world) *part { return &w.guard }, 3}, {func(w *world) *part { return &w.budget }, 1}} {
		wrote := w
		p := of.at(&wrote)
		ours := none
		if p.ours != none {
			ours = partly
		}
		*p = part{n: of.n, form: static, ours: ours, release: true, tagged: true}
		if wrote != w {
			out = append(out, wrote)
		}
	}
	return out
}

// counts are nodes, members, healthy members, and whether the list of members can be read.
type counts struct {
	nodes, members, healthy int
	listed                  bool
}

func countsOf(mode configv1.TopologyMode) []counts {
	switch mode {
	case sr:
		return []counts{{1, 1, 1, true}, {1, 1, 1, false}, {1, 3, 3, true}}
	case dual:
		return []counts{{2, 2, 2, true}, {2, 2, 1, true}}
	case ha:
		return []counts{{3, 3, 3, true}, {3, 3, 2, true}, {5, 5, 5, true}, {3, 5, 5, true}, {1, 1, 1, true}, {4, 4, 4, false}}
	case arbiter:
		return []counts{{3, 3, 3, true}, {5, 5, 4, true}}
	case external, unread:
		return []counts{{1, 1, 1, true}}
	}
	return []counts{{0, 0, 0, false}}
}

// worlds are the states from which the walks start: every combination that makes sense, also those that only a crash, a person or
// an older version can have left.
func worlds() []world {
	ours := func(n int, form configv1.TopologyMode, release bool) part {
		return part{n: n, form: string(form), ours: fully, release: release, tagged: release}
	}
	small, scaled := fromRelease, fromRelease
	small.n = 1
	scaled.n, scaled.scaled = 1, true
	type pair struct{ guard, budget part }
	pairs := []pair{
		{missing, missing}, {fromRelease, small}, {fromRelease, missing}, {missing, small}, {scaled, small}, {fromRelease, scaled2()},
		{ours(3, ha, true), ours(1, ha, true)}, {ours(5, ha, true), ours(2, ha, false)}, {ours(5, ha, false), ours(1, ha, true)},
		{ours(3, arbiter, false), ours(1, ha, false)}, {ours(2, ha, true), ours(1, ha, true)}, {ours(3, ha, false), missing}, {missing, ours(2, ha, false)},
		{part{n: 3, form: static, ours: partly, release: true, tagged: true}, ours(2, ha, true)},
		{ours(5, ha, false), part{n: 1, form: static, ours: partly, release: true, tagged: true}},
		{part{n: 3, form: static}, part{n: 1, form: static}},
	}
	var all []world
	for _, mode := range []configv1.TopologyMode{sr, ha, arbiter, dual, external, unknown, unread} {
		for _, c := range countsOf(mode) {
			for i, p := range pairs {
				if mode != sr && mode != ha && i%2 == 1 {
					continue // half of them is enough where the rules are the same
				}
				base := world{mode: mode, nodes: c.nodes, members: c.members, healthy: c.healthy, listed: c.listed, guard: p.guard, budget: p.budget, image: i%2 == 0}
				all = append(all, base)
				for _, entries := range []string{none, ourEntries, oneOfTwo, theirEntries, contraryE} {
					w := base
					w.version, w.entries = true, entries
					unmanaged := entries == ourEntries || entries == theirEntries
					seen, late, early := w, w, w
					seen.observed, seen.handsOff = true, unmanaged
					late.handsOff = true
					optOut, operator, other := seen, seen, seen
					optOut.optOut, operator.operator, other.image = true, true, !w.image
					all = append(all, seen, late, early)
					switch (i + len(entries)) % 3 {
					case 0:
						all = append(all, optOut)
					case 1:
						all = append(all, operator)
					case 2:
						all = append(all, other)
					}
				}
			}
		}
	}
	return all
}

func scaled2() part {
	p := fromRelease
	p.n, p.scaled = 2, true
	return p
}

// TestWalk shows R-ETC-3. From every state, with a crash and whatever the cluster-version-operator does after every
// write: no step of ours makes a guard missing or looser that quorum needs, and none falls where the
// cluster-version-operator writes.
func TestWalk(t *testing.T) {
	seen := map[world]bool{}
	queue := worlds()
	if testing.Short() { // fewer starts, which still come through every step
		queue = slices.DeleteFunc(queue, func(w world) bool { return w.mode != sr && w.mode != ha || w.nodes != w.members || !w.listed })
	}
	steps := map[etcdguard.Action]int{}
	for len(queue) > 0 {
		w := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if seen[w] {
			continue
		}
		seen[w] = true
		action, after := w.next(t)
		steps[action]++
		queue = append(append(queue, after), w.theirs()...)
		if t.Failed() && len(seen) > 5000 {
			t.FailNow()
		}
	}
	for _, action := range []etcdguard.Action{etcdguard.Nothing, etcdguard.Claim, etcdguard.ApplyBudget, etcdguard.ApplyDeployment, etcdguard.TidyBudget,
		etcdguard.TidyDeployment, etcdguard.DeleteBudget, etcdguard.DeleteDeployment, etcdguard.DisownBudget, etcdguard.DisownDeployment, etcdguard.Unclaim} {
		if steps[action] < 10 {
			t.Errorf("%q was walked only %d times: the walk does not walk", action, steps[action])
		}
	}
	t.Logf("%d states, steps %v", len(seen), steps)
}

// settle lets everybody go on until nobody has anything left to do.
func (w world) settle(t testing.TB) world {
	t.Helper()
	start, path := w, ""
	for turn := 0; ; turn++ {
		action, moved := w.next(t)
		if moved != w {
			path += " " + string(action)
		}
		for range 3 {
			for _, after := range moved.theirs() {
				moved = after
			}
		}
		if moved == w {
			return w
		}
		if w = moved; turn > 25 {
			t.Fatalf("%+v never comes to rest:%s", start, path)
		}
	}
}

// restless says what is wrong with a world in which nobody does anything anymore.
func restless(w world) string {
	held := !w.listed || w.healthy < expected(w.mode)
	kept := w.version && (w.optOut || (w.entries == contraryE && !w.operator))
	ours := w.guard.ours != none || w.budget.ours != none || w.entries == ourEntries || w.entries == oneOfTwo
	orphan := !w.version && (w.guard.release || w.budget.release)
	lacks := w.guard.n == gone || w.budget.n == gone
	switch {
	case w.mode == unread, orphan && w.mode != external:
		return "" // nothing is known, or nobody can be told: everything stays
	case kept && ours, w.mode == external && ours && !orphan:
		return "something of ours is left"
	case kept || w.mode == external || w.guard.scaled || w.budget.scaled:
		return ""
	case w.mode == sr && w.listed && w.members <= 1 && (w.guard.n != gone || w.budget.n != gone):
		return "a guard is left on one node"
	case w.mode == sr && w.operator && !lacks && ours:
		return ""
	case w.mode == sr:
		return ""
	case w.operator && ours:
		return "a guard of ours is left beside the operator's"
	case w.operator:
		return ""
	case lacks && !w.image && (!w.version || w.entries == theirEntries) && w.guard.n == gone:
		return "" // nobody makes it, and that is not of our doing
	case lacks:
		return "there is no guard"
	case w.strength() < w.need():
		return "the guard is too weak"
	case held:
		return ""
	case w.strength() != w.need() || w.guard.n != w.size():
		return "the guard has not the right size"
	case w.version && w.size() == 3 && w.mode != arbiter && ours && w.entries != theirEntries:
		return "entries that serve nothing block upgrades"
	case w.version && (w.size() != 3 || w.mode == arbiter) && !w.handsOff:
		return "two write the guard"
	}
	return ""
}

// From every state, when everybody goes on: it ends, at what the topology and the people want.
func TestWalkConverges(t *testing.T) {
	for i, start := range worlds() {
		if i%3 != 0 { // a third of them goes through most of the others
			continue
		}
		if w := start.settle(t); restless(w) != "" {
			t.Errorf("%+v ended at %+v: %s", start, w, restless(w))
		}
		if t.Failed() {
			return
		}
	}
}

// upset is one thing that happens to a cluster without anybody asking.
func (w world) upset(r *rand.Rand) world {
	switch r.IntN(12) {
	case 0:
		w.mode = append(allModes, unread, sr, ha)[r.IntN(len(allModes)+3)]
	case 1, 2:
		w.nodes = r.IntN(6)
	case 3, 4:
		w.members = 1 + r.IntN(5)
		w.healthy = min(w.healthy, w.members)
	case 5, 6:
		w.healthy = r.IntN(w.members + 1)
	case 7:
		w.listed = !w.listed
	case 8:
		w.entries, w.observed = none, false // a person takes them off
	case 9:
		w.guard = missing
	case 10:
		w.budget = missing
	case 11:
		w.observed = false // somebody edits the ClusterVersion
	}
	return w
}

// Hundreds of clusters in which anything happens in any order, and every write of ours may be the last before a crash, or come
// so late that what it was decided on is not true anymore. However long that goes on, no single write breaks the invariant, and
// when it ends everything comes to rest.
func TestWalkAtRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(2021, 4))
	writes, late := 0, 0
	histories := 300
	if testing.Short() {
		histories = 60
	}
	for i := range histories {
		n := 3 + 2*(i%2) // the release's guard is right for three, and nothing is written there
		w := world{mode: ha, nodes: n, members: n, healthy: n, listed: true, version: true, observed: true,
			guard: fromRelease, budget: fromRelease, image: r.IntN(2) == 0}
		w.budget.n = 1
		for range 40 {
			switch r.IntN(4) {
			case 0:
				w = w.upset(r)
			case 1:
				if after := w.theirs(); len(after) > 0 {
					w = after[r.IntN(len(after))]
				}
			case 2:
				if action, after := w.next(t); action != etcdguard.Nothing {
					w = after
					writes++
				}
			case 3:
				// Decided now, and sent after the cluster-version-operator acted. The API server takes the write only if its
				// object is still the one that was read.
				action, after := w.next(t)
				others := w.theirs()
				if action == etcdguard.Nothing || len(others) == 0 {
					continue
				}
				later := others[r.IntN(len(others))]
				if written, ok := later.sent(w, after); ok {
					if (action == etcdguard.ApplyBudget || action == etcdguard.ApplyDeployment) && later.writesStatic() {
						t.Fatalf("%+v: %s was sent when the cluster-version-operator was back: %+v", w, action, later)
					}
					later = written
					late++
				}
				w = later
			}
			if t.Failed() {
				return
			}
		}
		w.healthy, w.listed = w.members, true
		if end := w.settle(t); restless(end) != "" {
			t.Fatalf("%+v ended at %+v: %s", w, end, restless(end))
		}
	}
	if writes < histories*3/2 || late < histories/12 {
		t.Errorf("only %d writes in %d histories, %d of them late", writes, histories, late)
	}
}

// sent is the world w after the write that was to turn before into after; false where the object has changed meanwhile.
func (w world) sent(before, after world) (world, bool) {
	switch {
	case after.guard != before.guard:
		ok := w.guard == before.guard
		w.guard = after.guard
		return w, ok
	case after.budget != before.budget:
		ok := w.budget == before.budget
		w.budget = after.budget
		return w, ok
	}
	ok := w.entries == before.entries && w.observed == before.observed
	w.entries, w.observed = after.entries, after.observed
	return w, ok
}

// The way in and out on usual clusters, in words.
func TestWalkInWords(t *testing.T) {
	w := world{mode: sr, nodes: 1, members: 1, healthy: 1, listed: true, version: true, observed: true, guard: fromRelease, budget: fromRelease, image: true}
	w.budget.n = 1
	for _, step := range []struct {
		what string
		to   func(*world)
		want []etcdguard.Action
	}{
		{"installed on one node", func(*world) {}, []etcdguard.Action{"Claim", "DeleteBudget", "DeleteDeployment"}},
		{"to become three nodes", func(w *world) { w.mode = ha }, []etcdguard.Action{"ApplyBudget", "ApplyDeployment", "DisownDeployment", "DisownBudget", "Unclaim"}},
		{"they are there", func(w *world) { w.nodes, w.members, w.healthy = 3, 3, 3 }, nil},
		{"two more", func(w *world) { w.nodes, w.members, w.healthy = 5, 5, 5 },
			[]etcdguard.Action{"Claim", "ApplyDeployment", "ApplyBudget", "TidyDeployment", "TidyBudget"}},
		{"one node is removed, its member is not", func(w *world) { w.nodes, w.healthy = 4, 4 }, nil},
		{"and its member", func(w *world) { w.members = 4 }, []etcdguard.Action{"ApplyBudget", "ApplyDeployment"}},
		{"and another", func(w *world) { w.nodes, w.members, w.healthy = 3, 3, 3 },
			[]etcdguard.Action{"ApplyDeployment", "DisownDeployment", "DisownBudget", "Unclaim"}},
	} {
		step.to(&w)
		var got []etcdguard.Action
		for range 20 {
			action, after := w.next(t)
			if action != etcdguard.Nothing {
				got = append(got, action)
			}
			w = after
			for range 3 {
				for _, other := range w.theirs() {
					w = other
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("%s: %v, want %v", step.what, got, step.want)
		}
	}
}
