package machineconfig_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/fit"
	"github.com/solonode/sno/topology"
)

// The rules of the decisions once more, as tables over all combinations of what matters, written without a look at the code.

// A node is away unless it is ready, under no pressure, reachable and open to pods.
func TestAwayTable(t *testing.T) {
	const absent = corev1.ConditionStatus("")
	all := []corev1.ConditionStatus{absent, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}
	well := map[corev1.NodeConditionType][]corev1.ConditionStatus{
		corev1.NodeReady:              {corev1.ConditionTrue},
		corev1.NodeMemoryPressure:     {absent, corev1.ConditionFalse},
		corev1.NodeDiskPressure:       {absent, corev1.ConditionFalse},
		corev1.NodePIDPressure:        {absent, corev1.ConditionFalse},
		corev1.NodeNetworkUnavailable: {absent, corev1.ConditionFalse},
	}
	kinds := []corev1.NodeConditionType{
		corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable,
	}
	pools := pointers([]mcfgv1.MachineConfigPool{pool("master"), pool("worker")})
	for state := range 4 * 4 * 4 * 4 * 4 * 2 {
		third, rest, here := node("m3", "master"), state, true
		third.Status.Conditions = nil
		for _, kind := range kinds {
			status := all[rest%4]
			if rest /= 4; status != absent {
				third.Status.Conditions = append(third.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status})
			}
			here = here && slices.Contains(well[kind], status)
		}
		if rest == 1 {
			third, here = cordoned(third), false
		}
		start, _, err := machineconfig.MayStart(machineconfig.Turn{
			Cluster: *clusterOf(ha), Pools: pools, Nodes: pointers([]corev1.Node{node("m1", "master"), node("m2", "master"), third}), Asking: []string{"m1"},
		})
		if err != nil || (len(start) == 1) != here {
			t.Errorf("cordoned %t, %+v: %v start, %v", third.Spec.Unschedulable, third.Status.Conditions, start, err)
		}
	}
}

// turnNode is a node of a combination, as far as it matters whose turn it is.
type turnNode struct {
	name, role                        string
	there, away, asks, leaves, system bool
}

// states is how many turnNodes there are of a name and role: not there, or any combination of the rest.
const states = 1 + 16

func turnNodeOf(name, role string, state int) turnNode {
	if state == 0 {
		return turnNode{name: name, role: role}
	}
	state--
	return turnNode{name: name, role: role, there: true, away: state&1 > 0, asks: state&2 > 0, leaves: state&4 > 0, system: state&8 > 0}
}

func (n turnNode) node() corev1.Node {
	made := node(n.name, n.role)
	if n.away {
		made = notReady(made)
	}
	if n.system {
		made = windows(made)
	}
	return made
}

// member tells whether it counts: a Windows node is of no pool.
func (n turnNode) member() bool { return n.there && !n.system }

// waits tells whether it waits for an answer.
func (n turnNode) waits() bool { return n.member() && n.asks && !n.leaves }

// turnCase is one combination: the nodes that share a budget and how their pools are.
type turnCase struct {
	mode            configv1.TopologyMode
	nodes           []turnNode
	paused          map[string]bool
	missing, budget int
}

func (c turnCase) count(of func(turnNode) bool) int {
	n := 0
	for _, each := range c.nodes {
		if of(each) {
			n++
		}
	}
	return n
}

// agrees compares an answer with the rule, which is stated of the answer, not of how it is found: a node that waits starts if its pool is
// not paused, no master comes before it, and fewer than the budget are away: those that are missing, those that have leave, those that are away
// and do not ask, and of those that come before it, the ones that start and the ones that are away.
func (c turnCase) agrees(start []string, held []machineconfig.Hold) error {
	starts := func(n turnNode) bool { return slices.Contains(start, n.name) }
	mastersWait := c.count(func(n turnNode) bool { return n.member() && n.asks && n.role == "master" && !c.paused["master"] }) > 0
	why := map[string]string{}
	for _, n := range c.nodes {
		if n.there && n.system && n.asks {
			why[n.name] = machineconfig.HeldByWindows
		}
		if !n.waits() {
			continue
		}
		before := func(other turnNode) bool {
			return other.waits() && (other.away && !n.away || other.away == n.away && other.name < n.name)
		}
		away := c.missing + c.count(func(other turnNode) bool {
			return other.member() && (other.leaves || !other.asks && other.away || before(other) && (starts(other) || other.away))
		})
		switch {
		case c.paused[n.role]:
			why[n.name] = machineconfig.HeldByPause
		case n.role == "arbiter" && mastersWait:
			why[n.name] = machineconfig.HeldByMasters
		case away >= c.budget:
			why[n.name] = machineconfig.HeldByOthers
		}
		if _, waits := why[n.name]; waits == starts(n) {
			return fmt.Errorf("node %s starts %t, %d away of %d", n.name, starts(n), away, c.budget)
		}
	}
	if len(held) != len(why) || !slices.IsSorted(start) || len(start)+len(held) != c.count(func(n turnNode) bool { return n.waits() || n.there && n.system && n.asks }) {
		return fmt.Errorf("want held %v", why)
	}
	for _, hold := range held {
		if why[hold.Node] != hold.Why {
			return fmt.Errorf("node %s is held by %q, want %q", hold.Node, hold.Why, why[hold.Node])
		}
	}
	return nil
}

func (c turnCase) try(t *testing.T, said string) {
	var turn machineconfig.Turn
	turn.Cluster = *clusterOf(c.mode)
	for _, name := range []string{"master", "worker", "arbiter"} {
		p := pool(name)
		if said != "" {
			p = pool(name, most(said))
		}
		p.Spec.Paused = c.paused[name]
		turn.Pools = append(turn.Pools, &p)
	}
	for _, n := range c.nodes {
		if n.there {
			made := n.node()
			turn.Nodes = append(turn.Nodes, &made)
		}
		if n.asks {
			turn.Asking = append(turn.Asking, n.name)
		}
		if n.leaves {
			turn.Leaving = append(turn.Leaving, n.name)
		}
	}
	start, held, err := machineconfig.MayStart(turn)
	if err == nil {
		err = c.agrees(start, held)
	}
	if err != nil {
		t.Fatalf("%s, maxUnavailable %q, paused %v, %+v: start %v, held %v: %v", c.mode, said, c.paused, c.nodes, start, held, err)
	}
}

// Three nodes of the control plane. However many the pools allow, one of three or fewer goes at a time.
func TestTurnTableOfTheControlPlane(t *testing.T) {
	expected := map[configv1.TopologyMode]int{sr: 1, dual: 2, arbiter: 3, ha: 3, external: 0}
	for mode, whole := range expected {
		for _, third := range []string{"master", "arbiter"} {
			for state := range states * states * states {
				c := turnCase{mode: mode, budget: 1, nodes: []turnNode{
					turnNodeOf("n1", "master", state%states), turnNodeOf("n2", "master", state/states%states), turnNodeOf("n3", third, state/states/states),
				}}
				if slices.ContainsFunc(c.nodes, func(n turnNode) bool { return n.system }) {
					continue // Windows runs no control plane
				}
				c.missing = max(0, whole-c.count(turnNode.member))
				for _, c.paused = range []map[string]bool{nil, {"master": true}, {"arbiter": true}} {
					c.try(t, "3")
				}
			}
		}
	}
}

// Three workers, of which as many may be away as the pool says.
func TestTurnTableOfWorkers(t *testing.T) {
	// By how many the pool has.
	budgets := map[string][4]int{"": {1, 1, 1, 1}, "2": {1, 1, 2, 2}, "34%": {1, 1, 1, 1}, "67%": {1, 1, 1, 2}, "100%": {1, 1, 2, 3}}
	for said, budget := range budgets {
		for state := range states * states * states {
			c := turnCase{mode: sr, nodes: []turnNode{
				turnNodeOf("n1", "worker", state%states), turnNodeOf("n2", "worker", state/states%states), turnNodeOf("n3", "worker", state/states/states),
			}}
			if c.nodes[1].system || c.nodes[2].system {
				continue // one Windows node shows what there is to see
			}
			c.budget = budget[c.count(turnNode.member)]
			for _, c.paused = range []map[string]bool{nil, {"worker": true}} {
				c.try(t, said)
			}
		}
	}
}

// Every combination of topology, policy, node and room.
func TestDrainTable(t *testing.T) {
	const atOnce, never, all = machineconfig.DrainWorkers, machineconfig.DrainNever, machineconfig.DrainPolicy("all")
	answers := map[string]func(machineconfig.DrainDecision, error) bool{
		"no topology": func(_ machineconfig.DrainDecision, err error) bool { return errors.Is(err, topology.ErrClusterNotRead) },
		"bad inputs":  func(_ machineconfig.DrainDecision, err error) bool { return errors.Is(err, machineconfig.ErrInputs) },
		"as ever": func(d machineconfig.DrainDecision, _ error) bool {
			return d.Required && d.Reason == machineconfig.DrainAsEver
		},
		"nowhere": func(d machineconfig.DrainDecision, _ error) bool {
			return !d.Required && d.Reason == machineconfig.DrainNowhereToGo
		},
		"control": func(d machineconfig.DrainDecision, _ error) bool {
			return !d.Required && d.Reason == machineconfig.DrainControlPlane
		},
		"fits": func(d machineconfig.DrainDecision, _ error) bool { return d.Required && d.Reason == fit.Room },
		"does not fit": func(d machineconfig.DrainDecision, _ error) bool {
			return !d.Required && d.Reason != fit.Room && d.Reason != ""
		},
	}
	clusters := map[string]*topology.Cluster{"nil": nil, "unread": {}}
	for _, mode := range allModes {
		clusters[string(mode)] = clusterOf(mode)
	}
	for name, cluster := range clusters {
		for _, policy := range []machineconfig.DrainPolicy{"", never, atOnce, all} {
			for _, on := range []string{"m1", "w1", "gone"} {
				for _, room := range []bool{true, false} {
					in := running("1", "w1")
					if !room {
						in = running("3", "w1", "w2", "w3")
					}
					in.Cluster, in.Policy, in.Node = cluster, policy, on
					want := ""
					switch {
					case name == "nil" || name == "unread":
						want = "no topology"
					case policy == all:
						want = "bad inputs"
					case name != "SingleReplica":
						want = "as ever"
					case policy != atOnce:
						want = "nowhere"
					case on == "m1":
						want = "control"
					case on == "w1" && room:
						want = "fits"
					default:
						want = "does not fit"
					}
					decision, err := machineconfig.DrainRequired(in)
					if !answers[want](decision, err) || (err != nil && decision != machineconfig.DrainDecision{}) {
						t.Errorf("cluster %s, policy %q, node %s, room %t: %+v, %v, want %s", name, policy, on, room, decision, err, want)
					}
				}
			}
		}
	}
}

// choice is one value of something that a decision depends on.
type choice struct {
	name string
	make func(*machineconfig.Inputs)
}

// Every combination of the preconditions for the graceful shutdown. The first row whose choices all match says what happens.
func TestDecideTable(t *testing.T) {
	theirs := func(managed *[]metav1.ManagedFieldsEntry) {
		*managed = append(*managed, entry(person, `{"f:spec":{"f:logLevel":{}}}`))
	}
	inForce := written("1m30s", "90", "30s")
	factors := [][]choice{
		{{"valid", func(*machineconfig.Inputs) {}}, {"bad policy", func(in *machineconfig.Inputs) { in.Policy = "all" }}, {"unread", func(in *machineconfig.Inputs) { in.Cluster = &topology.Cluster{} }}},
		{{"single", func(*machineconfig.Inputs) {}}, {"no topology", func(in *machineconfig.Inputs) { in.Cluster = nil }}, {"highly available", func(in *machineconfig.Inputs) { in.Cluster = clusterOf(ha) }}},
		{{"one node", func(*machineconfig.Inputs) {}}, {"nodes not read", func(in *machineconfig.Inputs) { in.Nodes = nil }},
			{"no nodes", func(in *machineconfig.Inputs) { in.Nodes = []corev1.Node{} }}, {"two nodes", func(in *machineconfig.Inputs) { in.Nodes = append(in.Nodes, node("w1")) }}},
		{{"none", func(*machineconfig.Inputs) {}}, {"ours", inForce}, {"half", func(in *machineconfig.Inputs) { inForce(in); in.MachineConfig = nil }},
			{"their KubeletConfig", func(in *machineconfig.Inputs) { inForce(in); theirs(&in.KubeletConfigs[0].ManagedFields) }},
			{"their MachineConfig", func(in *machineconfig.Inputs) { inForce(in); theirs(&in.MachineConfig.ManagedFields) }}},
		{{"in", func(*machineconfig.Inputs) {}}, {"opted out", func(in *machineconfig.Inputs) {
			in.MachineConfiguration = &operatorv1.MachineConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
			optOut(in.MachineConfiguration)
		}}},
		{{"auto", func(*machineconfig.Inputs) {}}, {"on", func(in *machineconfig.Inputs) { in.Graceful = machineconfig.GracefulOn }}, {"off", func(in *machineconfig.Inputs) { in.Graceful = machineconfig.GracefulOff }}},
		{{"rests", func(*machineconfig.Inputs) {}}, {"paused", func(in *machineconfig.Inputs) { paused(&in.Pools[1]); updating(&in.Pools[1]) }}, {"updating", inPool(updating)},
			{"no pool", func(in *machineconfig.Inputs) { in.Pools = in.Pools[:1] }}, {"pool without its label", inPool(func(p *mcfgv1.MachineConfigPool) { p.Labels = map[string]string{"other": ""} })}},
		{{"free", func(*machineconfig.Inputs) {}}, {"another for workers", others("theirs", "worker", "{}")}, {"another for masters", others("theirs", "master", "{}")}},
		{{"pods", func(*machineconfig.Inputs) {}}, {"pods not read", func(in *machineconfig.Inputs) { in.Pods = nil }}},
	}
	const nothing, release, apply = "nothing", "release", "apply"
	type row struct {
		// when has of each list at least one that is chosen.
		when           [][]string
		effect, reason string
	}
	rows := []row{
		{[][]string{{"bad policy", "unread"}}, nothing, machineconfig.ReasonInvalid},
		{[][]string{{"no topology"}}, nothing, machineconfig.ReasonWaitingForInfrastructure},
		{[][]string{{"nodes not read"}}, nothing, machineconfig.ReasonWaitingForNodes},
		{[][]string{{"their KubeletConfig", "their MachineConfig"}}, nothing, machineconfig.ReasonFieldOwnedByOther},
		{[][]string{{"opted out"}}, release, machineconfig.ReasonOptedOut},
		{[][]string{{"off"}}, release, machineconfig.ReasonNotNeeded},
		{[][]string{{"auto"}, {"highly available"}}, release, machineconfig.ReasonNotNeeded},
		{[][]string{{"auto"}, {"no nodes", "two nodes"}}, release, machineconfig.ReasonNotNeeded},
		{[][]string{{"no pool", "pool without its label"}}, nothing, machineconfig.ReasonWaitingForObject},
		{[][]string{{"another for masters"}}, release, machineconfig.ReasonFieldOwnedByOther},
		{[][]string{{"pods not read"}}, nothing, machineconfig.ReasonWaitingForNodes},
		{[][]string{{"none", "half"}, {"updating"}}, nothing, machineconfig.ReasonSettling},
		{nil, apply, ""},
	}
	combinations := 1
	for _, choices := range factors {
		combinations *= len(choices)
	}
	for state := range combinations {
		var names []string
		rest, in := state, single()
		invalid := factors[0][rest%len(factors[0])].make
		for i, choices := range factors {
			chosen := choices[rest%len(choices)]
			rest /= len(choices)
			names = append(names, chosen.name)
			if i > 0 {
				chosen.make(&in)
			}
		}
		invalid(&in) // last: it replaces the cluster
		chosen := func(list []string) bool {
			return slices.ContainsFunc(list, func(name string) bool { return slices.Contains(names, name) })
		}
		want := rows[slices.IndexFunc(rows, func(r row) bool {
			return !slices.ContainsFunc(r.when, func(list []string) bool { return !chosen(list) })
		})]
		got := machineconfig.Decide(in)
		effect, reason := nothing, ""
		file, config := chosen([]string{"ours"}), chosen([]string{"ours", "half"})
		if got.Result != nil {
			reason = got.Result.Reason
		}
		switch {
		case got.KubeletConfig.Intent != nil && got.MachineConfig.Intent != nil:
			effect = apply
		case want.effect == release && got.KubeletConfig.Delete == config && got.MachineConfig.Delete == file && got.Restarts == config:
			effect = release
		case got.KubeletConfig.Delete || got.MachineConfig.Delete || got.Restarts:
			effect = "half"
		}
		if effect != want.effect || reason != want.reason || (effect == apply && got.Restarts != !file) {
			t.Fatalf("%q: %s (%s), restarts %t, want %s (%s)", names, effect, reason, got.Restarts, want.effect, want.reason)
		}
	}
}
