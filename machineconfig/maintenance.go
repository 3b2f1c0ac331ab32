package machineconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
)

// Waiting is what a paused pool keeps from its nodes.
type Waiting struct {
	// Pool is the pool's name.
	Pool string
	// Nodes is how many of its nodes do not have the config that the pool is to have.
	Nodes int
	// Changes are the kinds of change that wait, in alphabetical order.
	Changes []string
}

// String is a line for a status: "master: kubelet configuration, for 1 node".
func (w Waiting) String() string {
	nodes := "1 node"
	if w.Nodes != 1 {
		nodes = fmt.Sprintf("%d nodes", w.Nodes)
	}
	return fmt.Sprintf("%s: %s, for %s", w.Pool, strings.Join(w.Changes, ", "), nodes)
}

// Maintenance lists what waits in paused pools for a person to end the pause (R-MCO-4), in order of the pools' names. A
// node waits when its current config is not the one that its pool, or it itself, is to have. Of the nodes it needs no
// more than metadata.
//
// Errors: ErrPools.
func Maintenance(pools []*mcfgv1.MachineConfigPool, nodes []*corev1.Node) ([]Waiting, error) {
	waiting := map[string]int{}
	byName := map[string]*mcfgv1.MachineConfigPool{}
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
			waiting[pool.Name]++
			byName[pool.Name] = pool
		}
	}
	var out []Waiting
	for _, name := range slices.Sorted(maps.Keys(waiting)) {
		out = append(out, Waiting{Pool: name, Nodes: waiting[name], Changes: changes(byName[name])})
	}
	return out, nil
}

// changes are the kinds of the machine configs that came or went since the pool was up to date, and that of their contents when
// none did: then an update of the cluster, or an edit, changed what is in them.
func changes(pool *mcfgv1.MachineConfigPool) []string {
	names := func(sources []corev1.ObjectReference) map[string]bool {
		set := map[string]bool{}
		for _, source := range sources {
			set[source.Name] = true
		}
		return set
	}
	then, now := names(pool.Status.Configuration.Source), names(pool.Spec.Configuration.Source)
	kinds := map[string]bool{}
	for name := range now {
		if !then[name] {
			kinds[kindOf(name)] = true
		}
	}
	for name := range then {
		if !now[name] {
			kinds[kindOf(name)] = true
		}
	}
	if len(kinds) == 0 {
		return []string{"changed contents of machine configs"}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// kindOf tells by the name that its maker gives it what a machine config is about.
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
