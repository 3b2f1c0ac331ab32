// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/testcluster/standin"
	"github.com/solonode/sno/topology"
)

var errNames = errors.New("no member of etcd has the name of a control-plane node, so none is removed")

// reconcileMembers reads the members of etcd, removes one without a node, and returns how many vote (-1: they cannot
// be read), and the conditions.
func (r *reconciler) reconcileMembers(
	ctx context.Context, cluster topology.Cluster, overrides []byte, nodes []corev1.Node,
) (int, []operatorv1.OperatorCondition) {
	minimum, deprecation, err := etcdguard.MinimumMembers(cluster, overrides)
	override := standin.OverrideCondition(deprecation, err)
	if err == nil && minimum == 0 {
		return 0, append(memberConditions(nil, 0, "", nil), override) // etcd is not in the cluster
	}
	members, unread := r.etcd.members(ctx)
	if unread != nil {
		return -1, append(memberConditions(nil, minimum, "", unread), override)
	}
	all, _ := voters(members)
	if err != nil { // the minimum is not known, so nothing is removed
		return all, append(memberConditions(members, minimum, "", err), override)
	}
	members, problem := r.removeOne(ctx, cluster, overrides, members, nodes)
	restart, err := mayRestart(cluster, members)
	return all, append(memberConditions(members, minimum, restart, errors.Join(problem, err)), override)
}

// removeOne removes a member without a node if the module permits it, with members that were just read, and returns the
// others. The next one is removed after another reading.
func (r *reconciler) removeOne(
	ctx context.Context, cluster topology.Cluster, overrides []byte, members []member, nodes []corev1.Node,
) ([]member, error) {
	leftover := slices.DeleteFunc(slices.Clone(members), func(m member) bool {
		// A member that has not started has no name.
		return m.Name == "" || slices.ContainsFunc(nodes, func(node corev1.Node) bool { return node.Name == m.Name })
	})
	if len(leftover) > 0 && len(leftover) == len(members) {
		return members, errNames
	}
	var refused error
	for _, m := range leftover {
		verdict, err := etcdguard.SafeToRemove(cluster, overrides, listed(members), m.ID)
		if err != nil {
			return members, err
		}
		if !verdict.Safe {
			refused = errors.Join(refused, fmt.Errorf("member %s stays: %s", m.Name, verdict.Reason)) //nolint:err113 // for a condition
			continue
		}
		if err := r.etcd.remove(ctx, m); err != nil {
			return members, err
		}
		logr.FromContextOrDiscard(ctx).Info("Member removed", "member", m.Name)
		return slices.DeleteFunc(slices.Clone(members), func(other member) bool { return other.ID == m.ID }), nil
	}
	return members, refused
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
