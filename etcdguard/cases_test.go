// SPDX-License-Identifier: Apache-2.0

package etcdguard_test

import (
	"encoding/json"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/topology"
)

const (
	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	arbiter  = configv1.HighlyAvailableArbiterMode
	dual     = configv1.DualReplicaTopologyMode
	external = configv1.ExternalTopologyMode
	empty    = configv1.TopologyMode("")
	unknown  = configv1.TopologyMode("Quantum")
)

var allModes = []configv1.TopologyMode{ha, arbiter, sr, dual, external, empty, unknown}

// needsGuard, expectedMembers and maxEvictions (of n guards) are the rules, independent of the code.
func needsGuard(mode configv1.TopologyMode) bool { return mode != sr && mode != external }

func expectedMembers(mode configv1.TopologyMode) int {
	return map[configv1.TopologyMode]int{sr: 1, dual: 2, external: 0, ha: 3, arbiter: 3, empty: 3, unknown: 3}[mode]
}

func maxEvictions(mode configv1.TopologyMode, n int) int {
	if mode == dual && n == 2 {
		return 1
	}
	return (n - 1) / 2
}

func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

func text(v any) string { return string(must(json.Marshal(v))) }

func clusterOf(mode configv1.TopologyMode) topology.Cluster {
	return topology.Cluster{ControlPlane: topology.ReadingOf(mode), Infrastructure: topology.ReadingOf(ha), Platform: configv1.NonePlatformType}
}

func hostOf(mode configv1.TopologyMode, n int) etcdguard.Host {
	return must(etcdguard.NewHost(clusterOf(mode), max(n, 1), "cli"))
}

func node(name, role string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/" + role: ""}}}
}

// nodesOf returns n control-plane nodes, of which the first may be an arbiter, and a worker.
func nodesOf(mode configv1.TopologyMode, n int) []corev1.Node {
	nodes := []corev1.Node{node("w", "worker")}
	for i := range n {
		role := "master"
		if i == 0 && mode == arbiter {
			role = "arbiter"
		}
		nodes = append(nodes, node(fmt.Sprintf("m%d", i), role))
	}
	return nodes
}

func membersOf(n, healthy int) []etcdguard.Member {
	members := []etcdguard.Member{}
	for i := range n {
		members = append(members, etcdguard.Member{ID: uint64(i + 1), Healthy: i < healthy})
	}
	return members
}

const overrideKey = "useUnsupportedUnsafeNonHANonProductionUnstableEtcd"
