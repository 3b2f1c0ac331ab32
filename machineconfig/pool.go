package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/solonode/sno/machineconfig/fit"
	"github.com/solonode/sno/topology"
)

// ErrPools is returned for pools of which it cannot be told which node is in which.
var ErrPools = errors.New("unclear machine config pools")

// Turn is what MayStart needs to know. Pools and nodes may be those of an informer's cache: they are only read, and not copied.
type Turn struct {
	// Cluster is as topology.FromInfrastructure read it.
	Cluster topology.Cluster
	// Pools are all MachineConfigPools. Where there are none, the pools that every cluster has are taken, with their defaults.
	Pools []*mcfgv1.MachineConfigPool
	// Nodes are all nodes of the cluster.
	Nodes []*corev1.Node
	// Asking names the nodes that want to leave, and did not get leave yet.
	Asking []string
	// Leaving names those that got leave and are not back. A node that is not well, or takes no pods, counts as away by itself.
	Leaving []string
}

// Hold is a node that has to wait, and why. The text is stable and names no node.
type Hold struct {
	Node string
	Why  string
}

// Why a node has to wait.
const (
	HeldByPause    = "Its pool is paused"
	HeldByOthers   = "As many nodes of its pool are away as may be"
	HeldByMasters  = "The other control-plane nodes go first"
	HeldByNoPool   = "It belongs to no machine config pool"
	HeldByWindows  = "It runs Windows, and no machine config pool has such nodes"
	HeldByBadInput = "It cannot be told how many nodes of its pool may be away"
)

// MayStart says which of the nodes that ask may leave now, and why the others have to wait, both in the order of their names. Nodes that
// are away anyway go first.
//
// As many nodes of a pool are away at once as MaxUnavailable allows. Master and arbiter pool share one budget, since their nodes share
// etcd's quorum, in which control-plane nodes that the topology expects and that are not there count as away; arbiters follow when
// no master asks any more (U-MCO-5). A paused pool gives leave to none (R-MCO-4).
//
// A node is away when it is cordoned, when its condition Ready is missing or not True, and when MemoryPressure, DiskPressure, PIDPressure or
// NetworkUnavailable is there and not False. The machine-config operator takes a missing Ready as ready, and does not look at
// MemoryPressure and PIDPressure.
//
// Errors: topology.ErrClusterNotRead, with which nobody starts, and ErrPools and ErrMaxUnavailable, with which nodes of pools that are clear
// may start all the same.
func MayStart(turn Turn) (start []string, held []Hold, err error) {
	if err := turn.Cluster.Validate(); err != nil {
		return nil, nil, err //nolint:wrapcheck // it says what to do
	}
	groups, held, err := turn.groups()
	var errs []error
	if err != nil {
		errs = append(errs, err)
	}
	for _, g := range groups {
		most, err := g.most()
		if err != nil {
			errs = append(errs, err)
			for _, m := range g.asking() {
				held = append(held, Hold{m.node.Name, HeldByBadInput})
			}
			continue
		}
		away := g.away()
		for _, m := range g.asking() {
			why := ""
			switch {
			case m.pool.Spec.Paused:
				why = HeldByPause
			case m.pool.Name == ArbiterPool && g.mastersAsk():
				why = HeldByMasters
			case away >= most:
				why = HeldByOthers
			}
			if why == "" {
				start = append(start, m.node.Name)
			} else {
				held = append(held, Hold{m.node.Name, why})
			}
			if why == "" || !available(m.node) {
				away++
			}
		}
	}
	slices.Sort(start)
	slices.SortFunc(held, func(a, b Hold) int { return strings.Compare(a.Node, b.Node) })
	return start, held, errors.Join(errs...)
}

// group is the nodes that share a budget.
type group struct {
	pool    *mcfgv1.MachineConfigPool
	members []member
	// missing is how many nodes the topology expects and that are not there.
	missing int
}

type member struct {
	node         *corev1.Node
	pool         *mcfgv1.MachineConfigPool
	asks, leaves bool
}

// groups puts the nodes together that share a budget, and holds those that belong nowhere.
func (t Turn) groups() ([]*group, []Hold, error) {
	pools, nodes := t.Pools, t.Nodes
	if len(pools) == 0 {
		pools, nodes = impliedPools(), withMasterRole(nodes)
	}
	byName := map[string]*group{}
	var held []Hold
	var errs []error
	for _, node := range nodes {
		m := member{node: node, asks: slices.Contains(t.Asking, node.Name), leaves: slices.Contains(t.Leaving, node.Name)}
		pool, err := PoolOf(node, pools)
		if err != nil {
			errs = append(errs, err)
		}
		switch {
		case pool != nil || !m.asks:
		case isWindows(node):
			held = append(held, Hold{node.Name, HeldByWindows})
		default:
			held = append(held, Hold{node.Name, HeldByNoPool})
		}
		if pool == nil {
			continue
		}
		name := pool.Name
		if name == ArbiterPool {
			name = MasterPool
		}
		if byName[name] == nil {
			byName[name] = &group{}
		}
		m.pool = pool
		byName[name].members = append(byName[name].members, m)
		if byName[name].pool == nil || pool.Name == name {
			byName[name].pool = pool
		}
	}
	if g := byName[MasterPool]; g != nil {
		masters, arbiters := expected(t.Cluster.ControlPlane.Mode)
		g.missing = max(0, masters+arbiters-len(g.members))
	}
	var groups []*group
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		groups = append(groups, byName[name])
	}
	return groups, held, errors.Join(errs...)
}

func (g *group) most() (int, error) { return MaxUnavailable(g.pool, len(g.members)+g.missing) }

// away is how many are away, without those that ask: they are counted one by one.
func (g *group) away() int {
	away := g.missing
	for _, m := range g.members {
		if m.leaves || (!m.asks && !available(m.node)) {
			away++
		}
	}
	return away
}

// asking are those that ask, the ones that are away first.
func (g *group) asking() []member {
	asking := slices.DeleteFunc(slices.Clone(g.members), func(m member) bool { return !m.asks || m.leaves })
	slices.SortFunc(asking, func(a, b member) int {
		if here, there := available(a.node), available(b.node); here != there {
			if there {
				return -1
			}
			return 1
		}
		return strings.Compare(a.node.Name, b.node.Name)
	})
	return asking
}

// mastersAsk tells whether a master asks that is not kept by a pause.
func (g *group) mastersAsk() bool {
	return slices.ContainsFunc(g.members, func(m member) bool { return m.asks && m.pool.Name != ArbiterPool && !m.pool.Spec.Paused })
}

// available reports whether a node takes pods and is healthy, see MayStart.
func available(node *corev1.Node) bool { return fit.Healthy(node) && !node.Spec.Unschedulable }

// impliedPools are those of a cluster without machine config pools: every node that is nothing else is a worker.
func impliedPools() []*mcfgv1.MachineConfigPool {
	pool := func(name string, selector metav1.LabelSelector) *mcfgv1.MachineConfigPool {
		return &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: mcfgv1.MachineConfigPoolSpec{NodeSelector: &selector}}
	}
	has := func(role string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: role, Operator: metav1.LabelSelectorOpExists}}}
	}
	return []*mcfgv1.MachineConfigPool{pool(MasterPool, has(MasterRole)), pool(ArbiterPool, has(ArbiterRole)), pool(WorkerPool, metav1.LabelSelector{})}
}

// withMasterRole gives the control-plane nodes of plain Kubernetes the label that OpenShift's have, in copies.
func withMasterRole(nodes []*corev1.Node) []*corev1.Node {
	nodes = slices.Clone(nodes)
	for i, node := range nodes {
		if isControlPlane(node) {
			labelled := *node
			labelled.Labels = maps.Clone(node.Labels)
			labelled.Labels[MasterRole] = ""
			nodes[i] = &labelled
		}
	}
	return nodes
}

// PoolOf returns the pool that a node belongs to, nil when it belongs to none. A node with the master role is in the
// master pool, whatever else it is (U-MCO-6); on a single node it is a worker too (U-MCO-7). Then come pools that
// people made, whose selectors match it, then arbiter and worker. A Windows node is in none: the machine-config
// operator does not manage it, whatever its labels select.
//
// Errors: ErrPools, when two pools that people made claim the node, or a selector cannot be read.
func PoolOf(node *corev1.Node, pools []*mcfgv1.MachineConfigPool) (*mcfgv1.MachineConfigPool, error) {
	if isWindows(node) {
		return nil, nil
	}
	var found *mcfgv1.MachineConfigPool
	for _, name := range []string{MasterPool, "", ArbiterPool, WorkerPool} {
		for _, pool := range pools {
			if pool.Name != name && (name != "" || stockPool(pool.Name)) {
				continue
			}
			in, err := selects(pool.Spec.NodeSelector, node.Labels)
			if err != nil {
				return nil, fmt.Errorf("%w: MachineConfigPool %s: spec.nodeSelector: %w", ErrPools, pool.Name, err)
			}
			if in && found != nil {
				return nil, fmt.Errorf("%w: node %s is in the pools %s and %s; change the spec.nodeSelector of one", ErrPools, node.Name, found.Name, pool.Name)
			}
			if in {
				found = pool
			}
		}
		if found != nil {
			return found, nil
		}
	}
	return nil, nil
}

// isWindows goes by the label, which every kubelet sets; a node without it runs Linux, as for the machine-config operator.
func isWindows(node *corev1.Node) bool {
	return node.Labels[corev1.LabelOSStable] == string(corev1.Windows)
}

func stockPool(name string) bool {
	return name == MasterPool || name == ArbiterPool || name == WorkerPool
}

// selects is false for no selector: a pool without one has no nodes.
func selects(selector *metav1.LabelSelector, of map[string]string) (bool, error) {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false, err //nolint:wrapcheck // the caller knows whose selector it is
	}
	return parsed.Matches(labels.Set(of)), nil
}
