// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/standin"
	"github.com/solonode/sno/topology"
)

// guardState is the result of a reconciliation; nothing is left to do if the reason is AsExpected.
type guardState struct{ reason, message string }

// reconcileGuards maintains the guards and their budget. voters is how many members of etcd vote, -1 if they cannot be
// read.
func (r *reconciler) reconcileGuards(ctx context.Context, cluster topology.Cluster, nodes []corev1.Node, voters int) (guardState, error) {
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(etcdguard.Namespace), client.MatchingLabels(guardLabels)); err != nil {
		return guardState{}, fmt.Errorf("listing guards: %w", err)
	}
	live, err := standin.Get(ctx, r.client, etcdguard.Namespace, etcdguard.PodsBudgetName, &policyv1.PodDisruptionBudget{})
	if err != nil {
		return guardState{}, err
	}
	members := memberNodes(cluster, nodes)
	host, err := etcdguard.NewHost(cluster, max(len(members), voters), guardImage)
	if err != nil {
		return guardState{}, fmt.Errorf("describing the cluster: %w", err)
	}
	budget, err := etcdguard.PodsDisruptionBudget(host)
	if err != nil {
		return guardState{}, fmt.Errorf("shaping the budget of the guards: %w", err)
	}
	// The topology can change before members are removed.
	within := cluster.ControlPlane.Mode != configv1.ExternalTopologyMode
	if there := live != nil || len(pods.Items) > 0; budget == nil && within && voters != 1 && there {
		return guardState{reasonWaitingForMembers, fmt.Sprintf("The topology needs no guards; they stay while etcd has %d voting members (-1: not known)", voters)}, nil
	}
	// Before guards are created; and guards without it block nothing.
	if err := standin.EnsureBudget(ctx, r.client, live, budget); err != nil {
		return guardState{}, err
	}
	if budget == nil {
		return r.removeAll(ctx, pods.Items)
	}
	want, err := etcdguard.Pods(host, nodes)
	if err != nil {
		return guardState{}, fmt.Errorf("shaping the guards: %w", err)
	}
	return r.ensure(ctx, want, pods.Items, members)
}

func (r *reconciler) removeAll(ctx context.Context, pods []corev1.Pod) (guardState, error) {
	for i := range pods {
		if err := standin.Delete(ctx, r.client, &pods[i]); err != nil {
			return guardState{}, err
		}
	}
	if len(pods) > 0 {
		return guardState{"Removing", "The guards are being removed: the topology needs none"}, nil
	}
	return guardState{patch.ReasonAsExpected, "The topology needs no guards, and there are none"}, nil
}

// ensure replaces a guard that differs or has ended. That of a cordoned node stays.
func (r *reconciler) ensure(ctx context.Context, want []*corev1.Pod, live []corev1.Pod, nodes []corev1.Node) (guardState, error) {
	missing := 0
	var errs []error
	for _, pod := range want {
		i := slices.IndexFunc(live, func(p corev1.Pod) bool { return p.Name == pod.Name })
		switch {
		case i < 0:
			missing++
			errs = append(errs, standin.Create(ctx, r.client, pod))
		case ended(&live[i]) || !equality.Semantic.DeepDerivative(pod.Spec, live[i].Spec):
			missing++
			errs = append(errs, standin.Delete(ctx, r.client, &live[i])) // the event of the deletion causes the creation
		case live[i].DeletionTimestamp != nil || !podutils.IsPodReady(&live[i]):
			missing++
		}
	}
	for i := range live {
		if !slices.ContainsFunc(nodes, func(node corev1.Node) bool { return node.Name == live[i].Spec.NodeName }) {
			missing++
			errs = append(errs, standin.Delete(ctx, r.client, &live[i]))
		}
	}
	if missing > 0 {
		return guardState{patch.ReasonRollingOut, "Not every guard is ready yet; if it lasts, check etcd on the nodes of the others"}, errors.Join(errs...)
	}
	return guardState{patch.ReasonAsExpected, fmt.Sprintf("%d guards are ready", len(want))}, nil
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
