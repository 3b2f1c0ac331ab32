// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/solonode/sno/topology"
)

// bootstrapMember is the member of the installation, which has no node. It is removed when there are enough others.
const bootstrapMember = "etcd-bootstrap"

var errNames = errors.New("no member of etcd has the name of a control-plane node, so none is removed")

// memberReconciler reads the members of etcd, removes those without a node, and reports how many are missing.
type memberReconciler struct {
	reader
	etcdClient *etcd
	every      time.Duration
	// voters is the number of voting members of the last reading, -1 if it failed. changed triggers the guards.
	voters  atomic.Int64
	changed chan event.TypedGenericEvent[client.Object]
}

func (r *memberReconciler) reconcile(ctx context.Context, _ client.ObjectKey) (time.Duration, error) {
	etcd, cluster, err := r.read(ctx)
	if err != nil || etcd == nil {
		return r.every, err
	}
	conditions, err := r.reconcileMembers(ctx, *cluster, etcd)
	if err != nil {
		return 0, err
	}
	return r.every, r.publish(ctx, etcd, conditions)
}

func (r *memberReconciler) reconcileMembers(ctx context.Context, cluster topology.Cluster, etcd *operatorv1.Etcd) ([]operatorv1.OperatorCondition, error) {
	overrides := etcd.Spec.UnsupportedConfigOverrides.Raw
	gate, unreadable := scalingOf(cluster, overrides)
	conditions := []operatorv1.OperatorCondition{overrideCondition(gate.deprecation, unreadable)}
	if unreadable == nil && gate.minimum == 0 {
		return append(conditions, append(memberConditions(nil, gate, nil), restartCondition(""))...), nil // etcd is not in the cluster
	}
	members, err := r.etcdClient.members(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	all, _ := voters(members)
	if err != nil {
		all = -1
	}
	r.publishVoters(ctx, all)
	switch {
	case err != nil:
		return append(conditions, memberConditions(nil, gate, err)...), nil
	case unreadable != nil:
		// The minimum is not known, so nothing is removed, and the cluster does not count as complete.
		return append(conditions, memberConditions(members, gate, unreadable)...), nil
	}
	var nodes corev1.NodeList
	if err := r.client.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	members, problem := r.removeOne(ctx, cluster, overrides, members, memberNodes(cluster, nodes.Items))
	reason, err := mayRestart(cluster, members)
	if err != nil {
		return nil, fmt.Errorf("whether members may be restarted: %w", err)
	}
	return append(conditions, append(memberConditions(members, gate, problem), restartCondition(reason))...), nil
}

// publishVoters keeps the number for the guards.
func (r *memberReconciler) publishVoters(ctx context.Context, all int) {
	if r.voters.Swap(int64(all)) == int64(all) {
		return
	}
	select {
	case r.changed <- event.TypedGenericEvent[client.Object]{Object: &operatorv1.Etcd{}}:
	case <-ctx.Done():
	}
}

// removeOne removes a member without a node if the module permits it, the bootstrap member last, and returns the
// others. The next one is removed after another reading.
func (r *memberReconciler) removeOne(
	ctx context.Context, cluster topology.Cluster, overrides []byte, members []member, nodes []corev1.Node,
) ([]member, error) {
	leftover := withoutNode(members, nodes)
	if len(leftover) == 0 {
		return members, nil
	}
	if len(leftover) == len(members) {
		return members, errNames
	}
	var refused error
	for _, m := range leftover {
		verdict, err := mayRemove(cluster, overrides, members, m.ID)
		if err != nil {
			return members, err
		}
		if !verdict.Safe {
			refused = errors.Join(refused, fmt.Errorf("member %s stays: %s", m.Name, verdict.Reason)) //nolint:err113 // for a condition
			continue
		}
		if err := r.etcdClient.remove(ctx, m); err != nil {
			return members, err
		}
		logr.FromContextOrDiscard(ctx).Info("Member removed", "member", m.Name)
		return slices.DeleteFunc(slices.Clone(members), func(other member) bool { return other.ID == m.ID }), nil
	}
	return members, refused
}

// withoutNode returns the members to remove. A member that has not started has no name, and is not removed.
func withoutNode(members []member, nodes []corev1.Node) []member {
	var leftover []member
	for _, m := range members {
		if m.Name != "" && !slices.ContainsFunc(nodes, func(node corev1.Node) bool { return node.Name == m.Name }) {
			leftover = append(leftover, m)
		}
	}
	slices.SortStableFunc(leftover, func(a, b member) int {
		switch {
		case a.Name == b.Name || a.Name != bootstrapMember && b.Name != bootstrapMember:
			return 0
		case a.Name == bootstrapMember:
			return 1
		}
		return -1
	})
	return leftover
}
