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
	// form is the template: that of the release, or that of this module for ha or for arbiter.
	form string
	// ours is how much of it this module owns; release means that the cluster-version-operator owns something, scaled that a person set n.
	ours            string
	release, scaled bool
}

const (
	gone                    = -1
	none, partly, fully     = "", "partly", "fully"
	static                  = "static"
	ourEntries, oneOfTwo    = "ours", "half"
	theirEntries, contraryE = "theirs", "contrary"
	unread                  = configv1.TopologyMode("-")
)

// world is a cluster as far as the hand-over is concerned. Between any two of our writes this module may crash, and the cluster-version-operator acts
// by the ClusterVersion that it has seen.
type world struct {
	mode configv1.TopologyMode
	// counts are the nodes with a role, the members of etcd, the healthy ones, and whether the list of members can be read.
	counts
	// version means that there is a ClusterVersion and a cluster-version-operator.
	version bool
	// entries are ours, half (one of our two), theirs (another client's with unmanaged: true), contrary (with false) or none.
	entries string
	// observed means that status.observedGeneration is up to date, unmanaged that the cluster-version-operator does not write the guard.
	observed, unmanaged bool
	guard, budget       part
	image, optOut       bool
	// operator means that one of today's etcd operators has its own guards, so there is no static manifest.
	operator bool
}

type counts struct {
	nodes, members, healthy int
	listed                  bool
}

var (
	missing     = part{n: gone}
	fromRelease = part{n: 3, form: static, release: true}
	guards      = map[part]*appsv1.Deployment{}
	budgets     = map[part]*policyv1.PodDisruptionBudget{}
)

// sign sets the managedFields of an object, which had those of a client that owns all of it.
func (p part) sign(object metav1.Object, numberJSON string) {
	allOfIt := object.GetManagedFields()
	object.SetManagedFields(nil)
	switch {
	case p.release && p.scaled:
		signed(object, cvo, `{"f:metadata":{"f:annotations":{}}}`)
	case p.release:
		signed(object, cvo, numberJSON)
	}
	switch p.ours {
	case fully:
		object.SetManagedFields(append(object.GetManagedFields(), allOfIt...))
	case partly:
		signed(object, us, `{"f:metadata":{"f:labels":{}}}`)
	}
	if p.scaled {
		signed(object, person, numberJSON)
	}
	if len(object.GetManagedFields()) == 0 {
		signed(object, "installer", `{"f:metadata":{"f:labels":{}}}`)
	}
}

func (p part) deployment() *appsv1.Deployment {
	d, made := guards[p]
	switch {
	case made || p.n == gone:
		return d
	case p.form == static:
		d = staticGuard()
	default:
		d = ourGuard(configv1.TopologyMode(p.form), 3)
	}
	d.Spec.Replicas = ptr.To(int32(p.n))
	p.sign(d, replicasJSON)
	guards[p] = d
	return d
}

func (p part) disruptionBudget() *policyv1.PodDisruptionBudget {
	b, made := budgets[p]
	switch {
	case made || p.n == gone:
		return b
	case p.form == static:
		b = staticBudget()
	default:
		b = ourBudget(ha, 3)
	}
	b.Spec.MaxUnavailable = ptr.To(intstr.FromInt(p.n))
	p.sign(b, maxUnavailableJSON)
	budgets[p] = b
	return b
}

func (w world) inputs() etcdguard.Inputs {
	in := etcdguard.Inputs{
		Nodes: nodesOf(w.mode, w.nodes), Deployment: w.guard.deployment(), Budget: w.budget.disruptionBudget(), ClientSecret: true, CABundle: true,
	}
	if w.mode != unread {
		in.Cluster = ptr.To(clusterOf(w.mode))
	}
	if w.listed {
		in.Members = membersOf(w.members, w.healthy)
	}
	if w.image {
		in.Image = "cli"
	}
	if w.operator {
		operatorGuard(&in)
	}
	if !w.version {
		return in
	}
	in.ClusterVersion = map[string]func() *configv1.ClusterVersion{
		none: func() *configv1.ClusterVersion { return version() }, ourEntries: claimed,
		oneOfTwo:     func() *configv1.ClusterVersion { return claimedBy(us, true, deployment) },
		theirEntries: func() *configv1.ClusterVersion { return claimedBy(person, true, deployment, budget) },
		contraryE:    func() *configv1.ClusterVersion { return claimedBy(person, false, budget) },
	}[w.entries]()
	if !w.observed {
		unobserved(in.ClusterVersion)
	}
	if w.optOut {
		optOut(&in)
	}
	return in
}

// size is how many guards the cluster needs, need how many of them must stay, and strength how many stay whatever is evicted: the rules by hand.
func (w world) size() int {
	if !w.listed {
		return max(w.nodes, expected(w.mode))
	}
	return max(w.nodes, w.members, expected(w.mode))
}

func (w world) need() int { return w.size() - mayGo(w.mode, w.size()) }

func (w world) strength() int {
	if w.guard.n == gone || w.budget.n == gone {
		return 0
	}
	return max(w.guard.n-w.budget.n, 0)
}

func (w world) owned() bool { return w.guard.ours != none || w.budget.ours != none }

// guarded reports whether this module has to keep a guard.
func (w world) guarded() bool { return needsGuard(w.mode) && !w.operator }

// writesStatic reports whether the cluster-version-operator may write the guard now.
func (w world) writesStatic() bool { return w.version && !w.operator && !w.unmanaged }

// step is the next write of ours, the world after it, and what is wrong with it.
type step struct {
	decision etcdguard.Decision
	after    world
	problems []string
}

// steps remembers the steps, because all walks come through the same worlds.
var steps = map[world]step{}

// next returns our next write and the world after it, and reports every problem.
func (w world) next(t testing.TB) (etcdguard.Action, world) {
	t.Helper()
	s, before := steps[w]
	if !before {
		s = w.step()
		steps[w] = s
	}
	for _, problem := range s.problems {
		t.Errorf("%+v: %s %s", w, s.decision.Action, problem)
	}
	return s.decision.Action, s.after
}

func (w world) step() step {
	decision := etcdguard.Decide(w.inputs())
	s := step{decision: decision, after: w}
	after := &s.after
	problem := func(is bool, format string, args ...any) {
		if is {
			s.problems = append(s.problems, fmt.Sprintf(format, args...))
		}
	}
	writes := true
	kept := w.guarded() && !w.optOut && w.image
	switch decision.Action {
	case etcdguard.Nothing:
		return s
	case etcdguard.Claim:
		writes = false
		problem(w.entries != none && w.entries != oneOfTwo, "claims although the entries are %s", w.entries)
		problem(w.mode != arbiter && needsGuard(w.mode) && w.size() == 3 && (w.guard.release || w.budget.release) && w.entries == none && !w.owned(),
			"blocks upgrades for what the cluster-version-operator corrects")
		after.entries, after.observed = ourEntries, false
	case etcdguard.Unclaim:
		writes = false
		problem(w.owned(), "releases the entries before the guard")
		problem(kept && w.strength() < w.need(), "releases the entries although the guard is too weak")
		after.entries, after.observed = none, false
	case etcdguard.ApplyDeployment:
		form := ha
		if w.mode == arbiter {
			form = arbiter
		}
		after.guard.n, after.guard.form, after.guard.ours = int(*decision.Deployment.Spec.Replicas), string(form), fully
		problem(decision.Create != (w.guard.n == gone), "creates %t", decision.Create)
	case etcdguard.ApplyBudget:
		after.budget.n, after.budget.form, after.budget.ours = decision.Budget.Spec.MaxUnavailable.IntValue(), string(ha), fully
		problem(decision.Create != (w.budget.n == gone), "creates %t", decision.Create)
	case etcdguard.DisownDeployment, etcdguard.DisownBudget:
		writes = false
		p := &after.guard
		if decision.Action == etcdguard.DisownBudget {
			p = &after.budget
		}
		p.ours, p.release = none, p.release || decision.NewOwner == cvo
		problem(kept && w.entries != contraryE && w.strength() != w.need(), "releases a guard that does not fit")
	case etcdguard.DeleteBudget, etcdguard.DeleteDeployment:
		lone := w.mode == sr && w.listed && w.members <= 1
		yields := w.operator && needsGuard(w.mode) && w.owned()
		problem(!lone && !yields, "removes a guard that is needed")
		if decision.Action == etcdguard.DeleteBudget {
			after.budget = missing
		} else {
			after.guard = missing
		}
	}
	problem(*after == w, "changes nothing")
	deletes := decision.Action == etcdguard.DeleteBudget || decision.Action == etcdguard.DeleteDeployment
	problem(w.guard.scaled && (deletes || after.guard.n != w.guard.n) || w.budget.scaled && (deletes || after.budget.n != w.budget.n),
		"overwrites or removes what a person set")
	problem(writes && w.writesStatic(), "writes while the cluster-version-operator does")
	problem(w.mode == unread, "writes without the topology")
	floor := w.strength()
	if w.listed && w.healthy >= expected(w.mode) {
		floor = min(floor, w.need())
	}
	problem(w.guarded() && after.strength() < floor, "%d guards were sure to stay and then %d; %d are needed", w.strength(), after.strength(), w.need())
	return s
}

// theirs are the worlds after an act of the cluster-version-operator: it observes the ClusterVersion, and unless the guard is unmanaged it writes
// either part as its manifest has it.
func (w world) theirs() []world {
	if !w.version {
		return nil
	}
	var out []world
	observes := w
	observes.observed, observes.unmanaged = true, w.entries == ourEntries || w.entries == theirEntries
	out = append(out, observes)
	if w.writesStatic() {
		manifest := func(p part, n int) part {
			if p.ours != none {
				p.ours = partly
			}
			return part{n: n, form: static, ours: p.ours, release: true}
		}
		guard, budget := w, w
		guard.guard, budget.budget = manifest(w.guard, 3), manifest(w.budget, 1)
		out = append(out, guard, budget)
	}
	return slices.DeleteFunc(out, func(after world) bool { return after == w })
}

// worlds are the states from which the walks start: every combination that makes sense, also those that only a crash or a person can have left.
func worlds() []world {
	own := func(n int, form configv1.TopologyMode, release bool) part {
		return part{n: n, form: string(form), ours: fully, release: release}
	}
	with := func(n int, scaled bool) part { return part{n: n, form: static, release: true, scaled: scaled} }
	pairs := [][2]part{
		{missing, missing}, {fromRelease, with(1, false)}, {fromRelease, missing}, {missing, with(1, false)}, {with(1, true), with(1, false)},
		{fromRelease, with(2, true)}, {own(3, ha, true), own(1, ha, true)}, {own(5, ha, true), own(2, ha, false)}, {own(5, ha, false), own(1, ha, true)},
		{own(3, arbiter, false), own(1, ha, false)}, {own(2, ha, true), own(1, ha, true)}, {own(3, ha, false), missing}, {missing, own(2, ha, false)},
		{part{n: 3, form: static, ours: partly, release: true}, own(2, ha, true)},
		{own(5, ha, false), part{n: 1, form: static, ours: partly, release: true}},
		{part{n: 3, form: static}, part{n: 1, form: static}},
	}
	var all []world
	for _, of := range []struct {
		mode   configv1.TopologyMode
		counts []counts
	}{
		{sr, []counts{{1, 1, 1, true}, {1, 1, 1, false}, {1, 3, 3, true}}},
		{ha, []counts{{3, 3, 3, true}, {3, 3, 2, true}, {5, 5, 5, true}, {3, 5, 5, true}, {1, 1, 1, true}, {4, 4, 4, false}}},
		{arbiter, []counts{{3, 3, 3, true}, {5, 5, 4, true}}}, {dual, []counts{{2, 2, 2, true}, {2, 2, 1, true}}},
		{external, []counts{{1, 1, 1, true}}}, {unknown, []counts{{0, 0, 0, false}}}, {unread, []counts{{1, 1, 1, true}}},
	} {
		mode := of.mode
		for _, c := range of.counts {
			for i, p := range pairs {
				if mode != sr && mode != ha && i%2 == 1 {
					continue // half of them is enough where the rules are the same
				}
				base := world{mode: mode, counts: c, guard: p[0], budget: p[1], image: i%2 == 0}
				all = append(all, base)
				for _, entries := range []string{none, ourEntries, oneOfTwo, theirEntries, contraryE} {
					early := base
					early.version, early.entries = true, entries
					seen, late := early, early
					seen.observed, seen.unmanaged = true, entries == ourEntries || entries == theirEntries
					late.unmanaged = true
					other := seen
					switch (i + len(entries)) % 3 {
					case 0:
						other.optOut = true
					case 1:
						other.operator = true
					case 2:
						other.image = !other.image
					}
					all = append(all, seen, late, early, other)
				}
			}
		}
	}
	return all
}

// TestWalk shows R-ETC-3. From every state, with a crash after every write and whatever the cluster-version-operator does then, no step of ours
// makes a guard missing or weaker than quorum needs, or writes where the cluster-version-operator does. When everybody acts, it comes to rest.
func TestWalk(t *testing.T) {
	seen := map[world]bool{}
	queue := worlds()
	for i := 0; i < len(queue); i += 3 { // a third of them goes through most of the others
		if queue[i].settle(t); t.Failed() {
			return
		}
	}
	if testing.Short() { // fewer starts, which still come through every step
		queue = slices.DeleteFunc(queue, func(w world) bool { return w.mode != sr && w.mode != ha || w.nodes != w.members || !w.listed })
	}
	taken := map[etcdguard.Action]int{}
	for len(queue) > 0 {
		w := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if seen[w] {
			continue
		}
		seen[w] = true
		action, after := w.next(t)
		taken[action]++
		queue = append(append(queue, after), w.theirs()...)
		if t.Failed() && len(seen) > 5000 {
			t.FailNow()
		}
	}
	for action, n := range taken {
		if n < 10 || len(taken) != 9 {
			t.Errorf("%q was taken only %d times, or another action never: the walk shows nothing", action, n)
		}
	}
	t.Logf("%d states, steps %v", len(seen), taken)
}

// settle has everybody act until nobody has anything left to do, and checks what is left.
func (w world) settle(t testing.TB) {
	t.Helper()
	start, path := w, ""
	for turn := 0; turn < 26; turn++ {
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
			if fault := restless(w); fault != "" {
				t.Errorf("%+v ended at %+v: %s", start, w, fault)
			}
			return
		}
		w = moved
	}
	t.Fatalf("%+v never comes to rest:%s", start, path)
}

// restless is what is wrong with a world in which nobody acts anymore.
func restless(w world) string {
	kept := w.version && (w.optOut || (w.entries == contraryE && !w.operator))
	ours := w.owned() || w.entries == ourEntries || w.entries == oneOfTwo
	orphan := !w.version && (w.guard.release || w.budget.release)
	lacks := w.guard.n == gone || w.budget.n == gone
	switch {
	case w.mode == unread, orphan && w.mode != external:
		return "" // nothing is known, or the guard cannot be claimed: everything stays
	case kept && ours, w.mode == external && ours && !orphan:
		return "something of ours is left"
	case kept || w.mode == external || w.guard.scaled || w.budget.scaled:
		return ""
	case w.mode == sr && w.listed && w.members <= 1 && (w.guard.n != gone || w.budget.n != gone):
		return "a guard is left on one node"
	case w.mode == sr, w.operator && !ours:
		return ""
	case w.operator:
		return "our guard is left although the operator has its own"
	case lacks && !w.image && (!w.version || w.entries == theirEntries) && w.guard.n == gone:
		return "" // nobody creates it
	case lacks:
		return "there is no guard"
	case w.strength() < w.need():
		return "the guard is too weak"
	case !w.listed || w.healthy < expected(w.mode):
		return ""
	case w.strength() != w.need() || w.guard.n != w.size():
		return "the guard has the wrong size"
	case w.version && w.size() == 3 && w.mode != arbiter && ours && w.entries != theirEntries:
		return "entries without use block upgrades"
	case w.version && (w.size() != 3 || w.mode == arbiter) && !w.unmanaged:
		return "two write the guard"
	}
	return ""
}

// upset is one thing that happens to a cluster at random.
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
		w.entries, w.observed = none, false // a person removes them
	case 9:
		w.guard = missing
	case 10:
		w.budget = missing
	case 11:
		w.observed = false // a person edits the ClusterVersion
	}
	return w
}

// Hundreds of random histories, in which every write of ours may be the last before a crash, or arrive so late that what it was decided on is no
// longer true. No write breaks the invariant, and in the end everything comes to rest.
func TestWalkAtRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(2021, 4))
	writes, late := 0, 0
	histories := 300
	if testing.Short() {
		histories = 60
	}
	for i := range histories {
		n := 3 + 2*(i%2) // the release's guard is right for three, and nothing is written there
		w := world{mode: ha, counts: counts{n, n, n, true}, version: true, observed: true, guard: fromRelease, budget: fromRelease, image: r.IntN(2) == 0}
		w.budget.n = 1
		for range 40 {
			act := r.IntN(4)
			if act == 0 {
				w = w.upset(r)
				continue
			}
			action, after := w.next(t)
			others := w.theirs()
			switch {
			case act == 1 && len(others) > 0:
				w = others[r.IntN(len(others))]
			case act == 2 && action != etcdguard.Nothing:
				w = after
				writes++
			case act == 3 && action != etcdguard.Nothing && len(others) > 0:
				// Decided now, and sent after the cluster-version-operator acted. The API server accepts it if its object is as it was read.
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
		w.settle(t)
	}
	if writes < histories*3/2 || late < histories/12 {
		t.Errorf("only %d writes in %d histories, %d of them late", writes, histories, late)
	}
}

// sent is the world w after the write that was to turn before into after; false where the object has changed meanwhile.
func (w world) sent(before, after world) (world, bool) {
	written := w
	switch {
	case after.guard != before.guard:
		written.guard = after.guard
		return written, w.guard == before.guard
	case after.budget != before.budget:
		written.budget = after.budget
		return written, w.budget == before.budget
	}
	written.entries, written.observed = after.entries, after.observed
	return written, w.entries == before.entries && w.observed == before.observed
}
