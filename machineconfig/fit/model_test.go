// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/machineconfig/fit"
)

// model is a scheduler that places pods in any order on any feasible node.
type model struct {
	nodes []modelNode
	pods  []modelPod
}

type modelNode struct {
	cores, pods int64
	zone        string
	tainted     bool
}

type modelPod struct {
	app            int
	cores          int64
	port, tolerant bool
	// antiAffinity is to an application, or -1; wide means by zone.
	antiAffinity int
	wide         bool
	node         int
}

func randomModel(random *rand.Rand) model {
	var m model
	for range 2 + random.IntN(4) {
		m.nodes = append(m.nodes, modelNode{cores: 2 + random.Int64N(7), pods: 2 + random.Int64N(5), zone: fmt.Sprint(random.IntN(2)), tainted: random.IntN(6) == 0})
	}
	for range 1 + random.IntN(10) {
		pod := modelPod{app: random.IntN(4), cores: random.Int64N(4), port: random.IntN(6) == 0, tolerant: random.IntN(3) == 0, antiAffinity: -1, wide: random.IntN(2) == 0}
		if random.IntN(3) == 0 {
			pod.antiAffinity = random.IntN(4)
		}
		if at := m.feasible(pod); len(at) > 0 {
			pod.node = at[random.IntN(len(at))]
			m.pods = append(m.pods, pod)
		}
	}
	return m
}

func (m model) feasible(pod modelPod) []int {
	var nodes []int
	for i := range m.nodes {
		if m.fits(i, pod) {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

func (m model) fits(at int, pod modelPod) bool {
	cores, pods := pod.cores, int64(1)
	for _, other := range m.pods {
		apart := func(pod1, pod2 modelPod) bool {
			return pod1.antiAffinity == pod2.app && (other.node == at || (pod1.wide && m.nodes[other.node].zone == m.nodes[at].zone))
		}
		if apart(pod, other) || apart(other, pod) || (other.node == at && pod.port && other.port) {
			return false
		}
		if other.node == at {
			cores, pods = cores+other.cores, pods+1
		}
	}
	return pods <= m.nodes[at].pods && (pod.cores == 0 || cores <= m.nodes[at].cores) && (pod.tolerant || !m.nodes[at].tainted)
}

func (m model) cluster() *builder {
	b := newCluster()
	for i, node := range m.nodes {
		b.node(fmt.Sprint("w", i), node.cores, 999, labelled(zone, node.zone), func(n *corev1.Node) {
			n.Status.Allocatable[corev1.ResourcePods] = *quantity(node.pods)
			if node.tainted {
				tainted(corev1.TaintEffectNoSchedule)(n)
			}
		})
	}
	for i, pod := range m.pods {
		var change []func(*corev1.PodSpec)
		if pod.port {
			change = append(change, hostPort(80))
		}
		if pod.tolerant {
			change = append(change, tolerating(tolerates))
		}
		key := corev1.LabelHostname
		if pod.wide {
			key = zone
		}
		if pod.antiAffinity >= 0 {
			change = append(change, antiAffinity(fmt.Sprint(pod.antiAffinity), key))
		}
		b.replicas(fmt.Sprint("p", i), template(fmt.Sprint(pod.app), pod.cores, 0, change...), fmt.Sprint("w", pod.node))
	}
	return b
}

// drain moves all pods of node 0 in any order to any feasible nodes. It returns the pod that has none.
func (m model) drain(random *rand.Rand) (modelPod, bool) {
	var moving []modelPod
	m.pods = slices.Clone(m.pods)
	m.pods = slices.DeleteFunc(m.pods, func(pod modelPod) bool {
		if pod.node == 0 {
			moving = append(moving, pod)
		}
		return pod.node == 0
	})
	random.Shuffle(len(moving), func(i, j int) { moving[i], moving[j] = moving[j], moving[i] })
	for _, pod := range moving {
		feasible := slices.DeleteFunc(m.feasible(pod), func(at int) bool { return at == 0 })
		if len(feasible) == 0 {
			return pod, false
		}
		pod.node = feasible[random.IntN(len(feasible))]
		m.pods = append(m.pods, pod)
	}
	return modelPod{}, true
}

// TestAnyPlacementOrder checks that an allowed drain succeeds in any order, and that most of those that succeed are
// allowed.
func TestAnyPlacementOrder(t *testing.T) {
	const clusters, orders = 3000, 20
	var drains, allowed, possible int
	for randomSeed := range uint64(clusters) {
		random := rand.New(rand.NewPCG(randomSeed, 1))
		m := randomModel(random)
		if !slices.ContainsFunc(m.pods, func(pod modelPod) bool { return pod.node == 0 }) {
			continue
		}
		drains++
		verdict := fit.Check(m.cluster().Cluster, "w0")
		succeeds := true
		for range orders {
			pod, ok := m.drain(random)
			succeeds = succeeds && ok
			if verdict.Fits && !ok {
				t.Fatalf("random seed %d: allowed, but %+v found no node in %+v", randomSeed, pod, m)
			}
		}
		if verdict.Fits {
			allowed++
		}
		if succeeds {
			possible++
		}
	}
	t.Logf("%d drains, %d of them allowed, %d succeeded in all tested orders", drains, allowed, possible)
	if allowed*10 < possible*7 {
		t.Errorf("only %d of %d drains that succeed are allowed", allowed, possible)
	}
}
