// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/machineconfig/internal/nodestate"
	"github.com/solonode/sno/topology"
)

// ErrPools is returned if the pool of a node is ambiguous.
var ErrPools = errors.New("unclear machine config pools")

// DrainState is what MayStart needs. Pools and nodes are not modified, so they may be from a cache.
type DrainState struct {
	Cluster  topology.Cluster
	Pools    []*mcfgv1.MachineConfigPool // all; if there are none, nodes are in the standard pools by their roles
	Nodes    []*corev1.Node
	Pending  []string // names of nodes whose requested drain has not started
	Draining []string // names of nodes that are drained or being drained
}

// RecheckInterval is when to call MayStart again while nodes wait for others, whose availability is not watched.
const RecheckInterval = 30 * time.Second

// Waiting is why a node is not drained yet.
type Waiting struct {
	Reason  string
	Message string        // one sentence for a condition
	After   time.Duration // when to call MayStart again; 0 if a watch notices the end
}

// Why nodes wait.
var (
	PendingPoolPaused            = pending(ReasonUpdatesPaused, 0, "Its pool is paused")
	PendingMaxUnavailable        = pending(ReasonDraining, RecheckInterval, "As many nodes of its pool are unavailable as maxUnavailable permits")
	PendingMastersFirst          = pending(ReasonDraining, RecheckInterval, "Master nodes are drained before arbiter nodes")
	PendingInvalidMaxUnavailable = pending(ReasonDraining, 0, "The maxUnavailable of its pool cannot be read")
	PendingNoPool                = pending(ReasonInvalid, 0, "It belongs to no machine config pool")
	PendingWindows               = pending(ReasonInvalid, 0, "It runs Windows, and no machine config pool has such nodes")
)

func pending(reason string, after time.Duration, why string) Waiting {
	return Waiting{Reason: reason, After: after, Message: "A node waits to be drained. " + why}
}

// MayStart returns the nodes whose pending drains may start, sorted, and why the others have to wait, as the
// package's documentation describes (R-MCO-4, U-MCO-5). Errors: topology.ErrClusterNotRead; ErrPools and
// ErrMaxUnavailable, with which the nodes of that pool wait.
func MayStart(state DrainState) (start []string, waiting map[string]Waiting, err error) {
	if err := state.Cluster.Validate(); err != nil { // nothing starts before the topology is known
		return nil, nil, err //nolint:wrapcheck // it describes the remedy
	}
	waiting = map[string]Waiting{}
	var errs []error
	groups := map[string][]member{} // by the pool whose limit they share
	for _, node := range state.Nodes {
		pool, err := state.poolOf(node)
		errs = append(errs, err)
		pending := slices.Contains(state.Pending, node.Name)
		switch {
		case pool != nil:
			name := pool.Name
			if name == ArbiterPool {
				name = MasterPool
			}
			groups[name] = append(groups[name], member{
				node: node, pool: pool, pending: pending, draining: slices.Contains(state.Draining, node.Name),
				unavailable: node.Spec.Unschedulable || !nodestate.Healthy(node),
			})
		case pending && nodestate.IsWindows(node):
			waiting[node.Name] = PendingWindows
		case pending:
			waiting[node.Name] = PendingNoPool
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		started, err := mayStart(groups[name], waiting)
		start, errs = append(start, started...), append(errs, err)
	}
	slices.Sort(start)
	return start, waiting, errors.Join(errs...)
}

type member struct {
	node                           *corev1.Node
	pool                           *mcfgv1.MachineConfigPool
	pending, draining, unavailable bool
}

// mayStart returns which of the members that share a limit may start, and adds the others to waiting.
func mayStart(members []member, waiting map[string]Waiting) (start []string, err error) {
	pool := members[0].pool
	mastersPending := false
	unavailable := 0
	for _, m := range members {
		if m.pool.Name == MasterPool {
			pool = m.pool
			mastersPending = mastersPending || m.pending && !m.pool.Spec.Paused
		}
		if m.draining || (!m.pending && m.unavailable) {
			unavailable++ // pending ones are counted below
		}
	}
	slices.SortFunc(members, func(a, b member) int {
		if a.unavailable == b.unavailable {
			return strings.Compare(a.node.Name, b.node.Name)
		}
		if a.unavailable {
			return -1
		}
		return 1
	})
	limit, err := MaxUnavailable(pool, len(members))
	for _, m := range members {
		name := m.node.Name
		switch {
		case !m.pending || m.draining:
			continue
		case err != nil:
			waiting[name] = PendingInvalidMaxUnavailable
		case m.pool.Spec.Paused:
			waiting[name] = PendingPoolPaused
		case m.pool.Name == ArbiterPool && mastersPending:
			waiting[name] = PendingMastersFirst
		case unavailable >= limit:
			waiting[name] = PendingMaxUnavailable
		default:
			start = append(start, name)
			unavailable++
			continue
		}
		if m.unavailable {
			unavailable++
		}
	}
	return start, err
}

func (s DrainState) poolOf(node *corev1.Node) (*mcfgv1.MachineConfigPool, error) {
	if len(s.Pools) > 0 || nodestate.IsWindows(node) {
		return PoolOf(node, s.Pools)
	}
	name := WorkerPool
	if _, arbiter := node.Labels[ArbiterRole]; arbiter {
		name = ArbiterPool
	}
	if isControlPlane(node) {
		name = MasterPool
	}
	return &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
}

// PoolOf returns the pool of a node, or nil. The master role takes precedence over other roles (U-MCO-6), such as that
// of a worker on a single node (U-MCO-7); then custom pools, arbiter and worker. Windows nodes are in no pool. The
// error is ErrPools, if two custom pools select the node, or a selector is invalid.
func PoolOf(node *corev1.Node, pools []*mcfgv1.MachineConfigPool) (*mcfgv1.MachineConfigPool, error) {
	if nodestate.IsWindows(node) {
		return nil, nil
	}
	var found *mcfgv1.MachineConfigPool
	standard := []string{MasterPool, ArbiterPool, WorkerPool}
	for _, name := range []string{MasterPool, "", ArbiterPool, WorkerPool} {
		for _, pool := range pools {
			if pool.Name != name && (name != "" || slices.Contains(standard, pool.Name)) {
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

func selects(selector *metav1.LabelSelector, of map[string]string) (bool, error) {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false, err //nolint:wrapcheck // callers add the object
	}
	return parsed.Matches(labels.Set(of)), nil
}

// PendingChanges returns the changes that wait in paused pools (R-MCO-4), sorted, such as "master: kubelet
// configuration, for 1 node". It reads only metadata of nodes. The error is ErrPools.
func PendingChanges(pools []*mcfgv1.MachineConfigPool, nodes []*corev1.Node) ([]string, error) {
	outdated := map[*mcfgv1.MachineConfigPool]int{}
	for _, node := range nodes {
		pool, err := PoolOf(node, pools)
		if err != nil {
			return nil, err
		}
		current, known := node.Annotations[CurrentConfigAnnotation]
		if pool == nil || !pool.Spec.Paused || !known {
			continue
		}
		target := pool.Spec.Configuration.Name
		if (target != "" && current != target) || current != node.Annotations[DesiredConfigAnnotation] {
			outdated[pool]++
		}
	}
	var out []string
	for pool, count := range outdated {
		nodes := "1 node"
		if count != 1 {
			nodes = fmt.Sprintf("%d nodes", count)
		}
		out = append(out, fmt.Sprintf("%s: %s, for %s", pool.Name, changes(pool), nodes))
	}
	slices.Sort(out)
	return out, nil
}

// changes returns the kinds of machine configs that were added or removed since the pool was last updated.
func changes(pool *mcfgv1.MachineConfigPool) string {
	names := func(sources []corev1.ObjectReference) sets.Set[string] {
		all := sets.New[string]()
		for _, source := range sources {
			all.Insert(source.Name)
		}
		return all
	}
	kinds := sets.New[string]()
	for name := range names(pool.Spec.Configuration.Source).SymmetricDifference(names(pool.Status.Configuration.Source)) {
		kinds.Insert(kindOf(name))
	}
	if kinds.Len() == 0 {
		return "changed contents of machine configs"
	}
	return strings.Join(sets.List(kinds), ", ")
}

func kindOf(name string) string {
	for part, kind := range map[string]string{
		"-generated-kubelet":          "kubelet configuration",
		"-generated-containerruntime": "container runtime configuration",
		"-generated-registries":       "image registries",
		"-ssh":                        "SSH keys",
		ShutdownName:                  "graceful shutdown",
	} {
		if strings.Contains(name, part) {
			return kind
		}
	}
	return "machine configs"
}
