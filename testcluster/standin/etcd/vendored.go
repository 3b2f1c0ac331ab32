// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/topology"
)

// guards are what the cluster needs: nil for nothing.
type guards struct {
	budget *policyv1.PodDisruptionBudget
	pods   []*corev1.Pod
}

// wantedGuards returns the guards for the nodes and the voting members of etcd.
func wantedGuards(cluster topology.Cluster, nodes []corev1.Node, voters int) (guards, error) {
	host, err := etcdguard.NewHost(cluster, max(len(memberNodes(cluster, nodes)), voters), guardImage)
	if err != nil {
		return guards{}, fmt.Errorf("describing the cluster: %w", err)
	}
	budget, err := etcdguard.PodsDisruptionBudget(host)
	if err != nil {
		return guards{}, fmt.Errorf("shaping the budget of the guards: %w", err)
	}
	pods, err := etcdguard.Pods(host, nodes)
	if err != nil {
		return guards{}, fmt.Errorf("shaping the guards: %w", err)
	}
	return guards{budget, pods}, nil
}

// scaling is what the topology requires of the members: below the minimum the cluster is not bootstrapped, and no
// healthy member is removed.
type scaling struct {
	minimum     int
	deprecation string
}

func scalingOf(cluster topology.Cluster, overrides []byte) (scaling, error) {
	minimum, deprecation, err := etcdguard.MinimumMembers(cluster, overrides)
	return scaling{minimum, deprecation}, err
}

// mayRemove asks before every removal, with members that were just read.
func mayRemove(cluster topology.Cluster, overrides []byte, members []member, id uint64) (etcdguard.Verdict, error) {
	return etcdguard.SafeToRemove(cluster, overrides, listed(members), id)
}

// mayRestart reports whether an update may restart every member, one after the other, or else why not.
func mayRestart(cluster topology.Cluster, members []member) (string, error) {
	for _, m := range members {
		if verdict, err := etcdguard.SafeToRestart(cluster, listed(members), m.ID); err != nil || !verdict.Safe {
			return verdict.Reason, err
		}
	}
	return "", nil
}

func listed(members []member) []etcdguard.Member {
	list := make([]etcdguard.Member, len(members))
	for i, m := range members {
		list[i] = m.Member
	}
	return list
}

// memberNodes returns the nodes that have a member of etcd, or are to have one.
func memberNodes(cluster topology.Cluster, nodes []corev1.Node) []corev1.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(node corev1.Node) bool {
		_, master := node.Labels[etcdguard.MasterRole]
		_, arbiter := node.Labels[etcdguard.ArbiterRole]
		return !master && (!arbiter || cluster.ControlPlane.Mode != configv1.HighlyAvailableArbiterMode)
	})
}
