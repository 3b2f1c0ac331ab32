// SPDX-License-Identifier: Apache-2.0

package decision_test

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

	"github.com/solonode/sno/etcdguard/decision"
	"github.com/solonode/sno/etcdguard/internal/fixture"
	"github.com/solonode/sno/topology/topologytest"
)

type part struct {
	n    int    // replicas or maxUnavailable; absent for no object
	form string // static, or the mode for which this module wrote it
	// owns is how much this module owns; release and scaled report whether the cluster-version-operator or a person owns
	// n.
	owns            string
	release, scaled bool
}

const (
	absent                           = -1
	none, partly, fully              = "", "partly", "fully"
	static                           = "static"
	ownEntries, halfEntries          = "ours", "half"
	otherEntries, conflictingEntries = "theirs", "contrary"
	unreadMode                       = configv1.TopologyMode("-")
)

// clusterState is the state of the take-over. The module may crash, and the cluster-version-operator acts, between any
// two writes.
type clusterState struct {
	mode configv1.TopologyMode
	counts
	version             bool // there are a ClusterVersion and a cluster-version-operator
	entries             string
	observed, unmanaged bool // by the cluster-version-operator: of the ClusterVersion, the guard
	guard, budget       part
	image, optOut       bool
	operator            bool // the etcd operator has its own guards, so there is no static manifest
}

type counts struct {
	nodes, members, healthy int
	listed                  bool
}

var (
	missing     = part{n: absent}
	fromRelease = part{n: 3, form: static, release: true}
	guards      = map[part]*appsv1.Deployment{}
	budgets     = map[part]*policyv1.PodDisruptionBudget{}
)

// setManagers replaces the managedFields of an object, in which one client owns all fields.
func (p part) setManagers(object metav1.Object, numberJSON string) {
	allOfIt := object.GetManagedFields()
	object.SetManagedFields(nil)
	switch {
	case p.release && p.scaled:
		signed(object, cvo, `{"f:metadata":{"f:annotations":{}}}`)
	case p.release:
		signed(object, cvo, numberJSON)
	}
	switch p.owns {
	case fully:
		object.SetManagedFields(append(object.GetManagedFields(), allOfIt...))
	case partly:
		signed(object, fieldOwner, `{"f:metadata":{"f:labels":{}}}`)
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
	case made || p.n == absent:
		return d
	case p.form == static:
		d = staticGuard()
	default:
		d = ourGuard(configv1.TopologyMode(p.form), 3)
	}
	d.Spec.Replicas = ptr.To(int32(p.n))
	p.setManagers(d, replicasJSON)
	guards[p] = d
	return d
}

func (p part) disruptionBudget() *policyv1.PodDisruptionBudget {
	b, made := budgets[p]
	switch {
	case made || p.n == absent:
		return b
	case p.form == static:
		b = staticBudget()
	default:
		b = ourBudget(topologytest.HA, 3)
	}
	b.Spec.MaxUnavailable = ptr.To(intstr.FromInt(p.n))
	p.setManagers(b, maxUnavailableJSON)
	budgets[p] = b
	return b
}

func (c clusterState) inputs() decision.Inputs {
	in := decision.Inputs{
		Nodes: fixture.NodesOf(c.mode, c.nodes), Deployment: c.guard.deployment(), Budget: c.budget.disruptionBudget(), ClientSecret: true, CABundle: true,
	}
	if c.mode != unreadMode {
		in.Cluster = ptr.To(fixture.ClusterOf(c.mode))
	}
	if c.listed {
		in.Members = fixture.MembersOf(c.members, c.healthy)
	}
	if c.image {
		in.Image = "cli"
	}
	if c.operator {
		operatorGuard(&in)
	}
	if !c.version {
		return in
	}
	in.ClusterVersion = map[string]func() *configv1.ClusterVersion{
		none: func() *configv1.ClusterVersion { return version() }, ownEntries: claimed,
		halfEntries:        func() *configv1.ClusterVersion { return claimedBy(fieldOwner, true, deployment) },
		otherEntries:       func() *configv1.ClusterVersion { return claimedBy(person, true, deployment, budget) },
		conflictingEntries: func() *configv1.ClusterVersion { return claimedBy(person, false, budget) },
	}[c.entries]()
	if !c.observed {
		unobserved(in.ClusterVersion)
	}
	if c.optOut {
		optOut(&in)
	}
	return in
}

// size is how many guards are needed, minReady how many of them must stay ready, liveMinReady how many the live budget
// keeps.
func (c clusterState) size() int {
	if !c.listed {
		return max(c.nodes, fixture.ExpectedMembers(c.mode))
	}
	return max(c.nodes, c.members, fixture.ExpectedMembers(c.mode))
}

func (c clusterState) minReady() int { return c.size() - fixture.MaxEvictions(c.mode, c.size()) }

func (c clusterState) liveMinReady() int {
	if c.guard.n == absent || c.budget.n == absent {
		return 0
	}
	return max(c.guard.n-c.budget.n, 0)
}

func (c clusterState) owned() bool { return c.guard.owns != none || c.budget.owns != none }

func (c clusterState) guarded() bool { return fixture.NeedsGuard(c.mode) && !c.operator }

func (c clusterState) versionOperatorWrites() bool { return c.version && !c.operator && !c.unmanaged }

// step is the module's next write, the state after it, and the rules that it violates.
type step struct {
	decided  decision.Decision
	after    clusterState
	problems []string
}

// steps caches the steps, because the walks share most states.
var steps = map[clusterState]step{}

// next returns the next write and the state after it, and fails the test for each problem.
func (c clusterState) next(t testing.TB) (decision.Action, clusterState) {
	t.Helper()
	s, before := steps[c]
	if !before {
		s = c.step()
		steps[c] = s
	}
	for _, problem := range s.problems {
		t.Errorf("%+v: %s %s", c, actionOf(s.decided), problem)
	}
	return actionOf(s.decided), s.after
}

func (c clusterState) step() step {
	decided := decision.Decide(c.inputs())
	s := step{decided: decided, after: c}
	after := &s.after
	problem := func(is bool, format string, args ...any) {
		if is {
			s.problems = append(s.problems, fmt.Sprintf(format, args...))
		}
	}
	writes := true
	kept := c.guarded() && !c.optOut && c.image
	switch actionOf(decided) {
	case decision.Nothing:
		return s
	case decision.Claim:
		writes = false
		problem(c.entries != none && c.entries != halfEntries, "claims although entries are set: %s", c.entries)
		problem(c.mode != topologytest.Arbiter && fixture.NeedsGuard(c.mode) && c.size() == 3 && (c.guard.release || c.budget.release) && c.entries == none && !c.owned(),
			"blocks upgrades for what the cluster-version-operator corrects")
		after.entries, after.observed = ownEntries, false
	case decision.Unclaim:
		writes = false
		problem(c.owned(), "releases the entries before the guard")
		problem(kept && c.liveMinReady() < c.minReady(), "releases the entries although the guard is too weak")
		after.entries, after.observed = none, false
	case decision.ApplyDeployment:
		form := topologytest.HA
		if c.mode == topologytest.Arbiter {
			form = topologytest.Arbiter
		}
		after.guard.n, after.guard.form, after.guard.owns = int(*deploymentOf(decided).Spec.Replicas), string(form), fully
		problem(stepOf(decided).Create != (c.guard.n == absent), "creates %t", stepOf(decided).Create)
	case decision.ApplyBudget:
		after.budget.n, after.budget.form, after.budget.owns = budgetOf(decided).Spec.MaxUnavailable.IntValue(), string(topologytest.HA), fully
		problem(stepOf(decided).Create != (c.budget.n == absent), "creates %t", stepOf(decided).Create)
	case decision.DisownDeployment, decision.DisownBudget:
		writes = false
		p := &after.guard
		if actionOf(decided) == decision.DisownBudget {
			p = &after.budget
		}
		p.owns, p.release = none, p.release || stepOf(decided).NewOwner == cvo
		problem(kept && c.entries != conflictingEntries && c.liveMinReady() != c.minReady(), "releases a guard that does not fit")
	case decision.DeleteBudget, decision.DeleteDeployment:
		lone := c.mode == topologytest.SR && c.listed && c.members <= 1
		yields := c.operator && fixture.NeedsGuard(c.mode) && c.owned()
		problem(!lone && !yields, "removes a guard that is needed")
		if actionOf(decided) == decision.DeleteBudget {
			after.budget = missing
		} else {
			after.guard = missing
		}
	}
	problem(*after == c, "changes nothing")
	deletes := actionOf(decided) == decision.DeleteBudget || actionOf(decided) == decision.DeleteDeployment
	problem(c.guard.scaled && (deletes || after.guard.n != c.guard.n) || c.budget.scaled && (deletes || after.budget.n != c.budget.n),
		"overwrites or removes what a person set")
	problem(writes && c.versionOperatorWrites(), "writes while the cluster-version-operator does")
	problem(c.mode == unreadMode, "writes without the topology")
	floor := c.liveMinReady()
	if c.listed && c.healthy >= fixture.ExpectedMembers(c.mode) {
		floor = min(floor, c.minReady())
	}
	problem(c.guarded() && after.liveMinReady() < floor, "%d guards were kept ready, and then %d; want %d",
		c.liveMinReady(), after.liveMinReady(), c.minReady())
	return s
}

// versionOperatorActs returns the states after an act of the cluster-version-operator: it observes the ClusterVersion,
// or applies one of its manifests.
func (c clusterState) versionOperatorActs() []clusterState {
	if !c.version {
		return nil
	}
	var out []clusterState
	observes := c
	observes.observed, observes.unmanaged = true, c.entries == ownEntries || c.entries == otherEntries
	out = append(out, observes)
	if c.versionOperatorWrites() {
		manifest := func(p part, n int) part {
			if p.owns != none {
				p.owns = partly
			}
			return part{n: n, form: static, owns: p.owns, release: true}
		}
		guard, budget := c, c
		guard.guard, budget.budget = manifest(c.guard, 3), manifest(c.budget, 1)
		out = append(out, guard, budget)
	}
	return slices.DeleteFunc(out, func(after clusterState) bool { return after == c })
}

// startStates returns every sensible combination, also those after a crash or a change by a person.
func startStates() []clusterState {
	own := func(n int, form configv1.TopologyMode, release bool) part {
		return part{n: n, form: string(form), owns: fully, release: release}
	}
	with := func(n int, scaled bool) part { return part{n: n, form: static, release: true, scaled: scaled} }
	pairs := [][2]part{
		{missing, missing}, {fromRelease, with(1, false)}, {fromRelease, missing}, {missing, with(1, false)}, {with(1, true), with(1, false)},
		{fromRelease, with(2, true)}, {own(3, topologytest.HA, true), own(1, topologytest.HA, true)}, {own(5, topologytest.HA, true), own(2, topologytest.HA, false)}, {own(5, topologytest.HA, false), own(1, topologytest.HA, true)},
		{own(3, topologytest.Arbiter, false), own(1, topologytest.HA, false)}, {own(2, topologytest.HA, true), own(1, topologytest.HA, true)}, {own(3, topologytest.HA, false), missing}, {missing, own(2, topologytest.HA, false)},
		{part{n: 3, form: static, owns: partly, release: true}, own(2, topologytest.HA, true)},
		{own(5, topologytest.HA, false), part{n: 1, form: static, owns: partly, release: true}},
		{part{n: 3, form: static}, part{n: 1, form: static}},
	}
	var all []clusterState
	for _, of := range []struct {
		mode   configv1.TopologyMode
		counts []counts
	}{
		{topologytest.SR, []counts{{1, 1, 1, true}, {1, 1, 1, false}, {1, 3, 3, true}}},
		{topologytest.HA, []counts{{3, 3, 3, true}, {3, 3, 2, true}, {5, 5, 5, true}, {3, 5, 5, true}, {1, 1, 1, true}, {4, 4, 4, false}}},
		{topologytest.Arbiter, []counts{{3, 3, 3, true}, {5, 5, 4, true}}}, {topologytest.Dual, []counts{{2, 2, 2, true}, {2, 2, 1, true}}},
		{topologytest.External, []counts{{1, 1, 1, true}}}, {topologytest.Unknown, []counts{{0, 0, 0, false}}}, {unreadMode, []counts{{1, 1, 1, true}}},
	} {
		mode := of.mode
		for _, c := range of.counts {
			for i, p := range pairs {
				if mode != topologytest.SR && mode != topologytest.HA && i%2 == 1 {
					continue // the rules are those of ha
				}
				base := clusterState{mode: mode, counts: c, guard: p[0], budget: p[1], image: i%2 == 0}
				all = append(all, base)
				for _, entries := range []string{none, ownEntries, halfEntries, otherEntries, conflictingEntries} {
					early := base
					early.version, early.entries = true, entries
					seen, late := early, early
					seen.observed, seen.unmanaged = true, entries == ownEntries || entries == otherEntries
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

// TestWalk shows R-ETC-3: from every state, with a crash and any act of the cluster-version-operator after every write,
// no step removes a needed guard, makes it too weak, or writes while the cluster-version-operator does. Without crashes
// it settles.
func TestWalk(t *testing.T) {
	seen := map[clusterState]bool{}
	queue := startStates()
	for i := 0; i < len(queue); i += 3 { // a third reaches most of the others
		if queue[i].settle(t); t.Failed() {
			return
		}
	}
	if testing.Short() { // enough for every step
		queue = slices.DeleteFunc(queue, func(c clusterState) bool {
			return c.mode != topologytest.SR && c.mode != topologytest.HA || c.nodes != c.members || !c.listed
		})
	}
	taken := map[decision.Action]int{}
	for len(queue) > 0 {
		w := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if seen[w] {
			continue
		}
		seen[w] = true
		action, after := w.next(t)
		taken[action]++
		queue = append(append(queue, after), w.versionOperatorActs()...)
		if t.Failed() && len(seen) > 5000 {
			t.FailNow()
		}
	}
	for action, n := range taken {
		if n < 10 || len(taken) != 9 {
			t.Errorf("%q was taken only %d times, or another action never", action, n)
		}
	}
	t.Logf("%d states, steps %v", len(seen), taken)
}

// settle runs the module and the cluster-version-operator until neither acts, and checks the result.
func (c clusterState) settle(t testing.TB) {
	t.Helper()
	start, path := c, ""
	for turn := 0; turn < 26; turn++ {
		action, moved := c.next(t)
		if moved != c {
			path += " " + string(action)
		}
		for range 3 {
			for _, after := range moved.versionOperatorActs() {
				moved = after
			}
		}
		if moved == c {
			if fault := violation(c); fault != "" {
				t.Errorf("%+v ended at %+v: %s", start, c, fault)
			}
			return
		}
		c = moved
	}
	t.Fatalf("%+v does not settle:%s", start, path)
}

// violation returns the rule that a settled state violates.
func violation(c clusterState) string {
	kept := c.version && (c.optOut || (c.entries == conflictingEntries && !c.operator))
	ours := c.owned() || c.entries == ownEntries || c.entries == halfEntries
	orphan := !c.version && (c.guard.release || c.budget.release)
	lacks := c.guard.n == absent || c.budget.n == absent
	switch {
	case c.mode == unreadMode, orphan && c.mode != topologytest.External:
		return "" // no writes
	case kept && ours, c.mode == topologytest.External && ours && !orphan:
		return "fields or entries of this module are left"
	case kept || c.mode == topologytest.External || c.guard.scaled || c.budget.scaled:
		return ""
	case c.mode == topologytest.SR && c.listed && c.members <= 1 && (c.guard.n != absent || c.budget.n != absent):
		return "a guard is left on one node"
	case c.mode == topologytest.SR, c.operator && !ours:
		return ""
	case c.operator:
		return "the guard of this module is left although the operator has its own"
	case lacks && !c.image && (!c.version || c.entries == otherEntries) && c.guard.n == absent:
		return "" // not created without an image
	case lacks:
		return "there is no guard"
	case c.liveMinReady() < c.minReady():
		return "the guard is too weak"
	case !c.listed || c.healthy < fixture.ExpectedMembers(c.mode):
		return ""
	case c.liveMinReady() != c.minReady() || c.guard.n != c.size():
		return "the guard has the wrong size"
	case c.version && c.size() == 3 && c.mode != topologytest.Arbiter && ours && c.entries != otherEntries:
		return "unneeded entries block upgrades"
	case c.version && (c.size() != 3 || c.mode == topologytest.Arbiter) && !c.unmanaged:
		return "the guard has two writers"
	}
	return ""
}

func (c clusterState) disturb(r *rand.Rand) clusterState {
	switch r.IntN(12) {
	case 0:
		c.mode = append(topologytest.AllModes, unreadMode, topologytest.SR, topologytest.HA)[r.IntN(len(topologytest.AllModes)+3)]
	case 1, 2:
		c.nodes = r.IntN(6)
	case 3, 4:
		c.members = 1 + r.IntN(5)
		c.healthy = min(c.healthy, c.members)
	case 5, 6:
		c.healthy = r.IntN(c.members + 1)
	case 7:
		c.listed = !c.listed
	case 8:
		c.entries, c.observed = none, false // a person removes them
	case 9:
		c.guard = missing
	case 10:
		c.budget = missing
	case 11:
		c.observed = false // a person edits the ClusterVersion
	}
	return c
}

// TestWalkAtRandom runs random histories, in which the module may crash after a write, and a write may arrive after the
// state has changed. No write violates the rules, and each history settles.
func TestWalkAtRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(2021, 4))
	writes, late := 0, 0
	histories := 300
	if testing.Short() {
		histories = 60
	}
	for i := range histories {
		n := 3 + 2*(i%2) // for three the release's guard is correct
		c := clusterState{mode: topologytest.HA, counts: counts{n, n, n, true}, version: true, observed: true, guard: fromRelease, budget: fromRelease}
		c.image = r.IntN(2) == 0
		c.budget.n = 1
		for range 40 {
			act := r.IntN(4)
			if act == 0 {
				c = c.disturb(r)
				continue
			}
			action, after := c.next(t)
			others := c.versionOperatorActs()
			switch {
			case act == 1 && len(others) > 0:
				c = others[r.IntN(len(others))]
			case act == 2 && action != decision.Nothing:
				c = after
				writes++
			case act == 3 && action != decision.Nothing && len(others) > 0:
				// The write is sent after the cluster-version-operator acted. The API server accepts it if its object is unchanged.
				later := others[r.IntN(len(others))]
				if written, ok := later.sendLate(c, after); ok {
					if (action == decision.ApplyBudget || action == decision.ApplyDeployment) && later.versionOperatorWrites() {
						t.Fatalf("%+v: %s was accepted while the cluster-version-operator writes: %+v", c, action, later)
					}
					later = written
					late++
				}
				c = later
			}
			if t.Failed() {
				return
			}
		}
		c.healthy, c.listed = c.members, true
		c.settle(t)
	}
	if writes < histories*3/2 || late < histories/12 {
		t.Errorf("only %d writes in %d histories, %d of them late", writes, histories, late)
	}
}

// sendLate returns w after the write from before to after; false if the object has changed.
func (c clusterState) sendLate(before, after clusterState) (clusterState, bool) {
	written := c
	switch {
	case after.guard != before.guard:
		written.guard = after.guard
		return written, c.guard == before.guard
	case after.budget != before.budget:
		written.budget = after.budget
		return written, c.budget == before.budget
	}
	written.entries, written.observed = after.entries, after.observed
	return written, c.entries == before.entries && c.observed == before.observed
}
