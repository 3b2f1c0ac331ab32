// SPDX-License-Identifier: Apache-2.0

package operand

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/scenario"
)

const (
	masterLabel = "node-role.kubernetes.io/master"

	poll = 50 * time.Millisecond
	// WaitTimeout bounds every wait. On simulated nodes a wait takes a second or two, and more on a busy machine; it
	// never ends only if the scheduler finds no node or a budget allows no eviction.
	WaitTimeout = 2 * time.Minute
)

// ErrNotSettled is returned when a Deployment does not reach the expected state.
var ErrNotSettled = errors.New("does not reach the expected state")

// WaitSettled waits until all Deployments are rolled out as expected: the number of pods, all ready, on the pool, and
// several of them on different nodes. Otherwise the error contains the difference, and for Pending pods the reason.
func WaitSettled(ctx context.Context, kube client.Client, want []scenario.Operand) error {
	var wrong error
	err := wait.PollUntilContextTimeout(ctx, poll, WaitTimeout, true, func(ctx context.Context) (bool, error) {
		var errs []error
		for _, w := range want {
			errs = append(errs, unsettled(ctx, kube, w))
		}
		now := errors.Join(errs...)
		if ctx.Err() == nil { // otherwise the only problem is the timeout
			wrong = now
		}
		return now == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w: %w", ErrNotSettled, err, wrong)
	}
	return nil
}

// Deployment reads the Deployment of an operand.
func Deployment(ctx context.Context, kube client.Client, o scenario.Operand) (*appsv1.Deployment, error) {
	live := &appsv1.Deployment{}
	if err := kube.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, live); err != nil {
		return nil, fmt.Errorf("read Deployment %s: %w", o, err)
	}
	return live, nil
}

// Pods returns the pods of Deployments with their names.
func Pods(ctx context.Context, kube client.Client, operands []scenario.Operand) (map[types.UID]string, error) {
	found := map[types.UID]string{}
	for _, o := range operands {
		live, err := Deployment(ctx, kube, o)
		if err != nil {
			return nil, err
		}
		all, err := pods(ctx, kube, live)
		if err != nil {
			return nil, err
		}
		for i := range all {
			found[all[i].UID] = all[i].Name
		}
	}
	return found, nil
}

func unsettled(ctx context.Context, kube client.Client, want scenario.Operand) error {
	live, err := Deployment(ctx, kube, want)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no Deployment %s", want)
	case err != nil:
		return err
	case live.Spec.Replicas == nil || *live.Spec.Replicas != want.Replicas:
		return fmt.Errorf("%s is to have %d replicas and has the spec %d", want, want.Replicas, *live.Spec.Replicas)
	}
	all, err := pods(ctx, kube, live)
	if err != nil {
		return err
	}
	status := live.Status
	if status.ObservedGeneration < live.Generation || status.UpdatedReplicas != want.Replicas || status.Replicas != want.Replicas ||
		status.AvailableReplicas != want.Replicas || len(all) != int(want.Replicas) {
		return fmt.Errorf("%s is not rolled out: %d of %d updated, %d available, %d in all%s",
			want, status.UpdatedReplicas, want.Replicas, status.AvailableReplicas, status.Replicas, describe(all))
	}
	on := map[string]bool{}
	for i := range all {
		node, err := nodeOf(ctx, kube, &all[i], want.Pool)
		if err != nil {
			return err
		}
		on[node] = true
	}
	if len(on) != len(all) {
		return fmt.Errorf("pods of %s share a node%s", want, describe(all))
	}
	return nil
}

// nodeOf returns the node of a ready pod, which must be of the pool.
func nodeOf(ctx context.Context, kube client.Client, pod *corev1.Pod, pool scenario.Pool) (string, error) {
	if pod.DeletionTimestamp != nil || !ready(pod) {
		return "", fmt.Errorf("a pod is not ready%s", describe([]corev1.Pod{*pod}))
	}
	node := &corev1.Node{}
	if err := kube.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node); err != nil {
		return "", fmt.Errorf("read the node of pod %s: %w", pod.Name, err)
	}
	if _, master := node.Labels[masterLabel]; pool == scenario.PoolMaster && !master {
		return "", fmt.Errorf("pod %s is on %s, which is no control-plane node", pod.Name, node.Name)
	}
	return node.Name, nil
}

func pods(ctx context.Context, kube client.Client, of *appsv1.Deployment) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(of.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("read the selector of %s: %w", of.Name, err)
	}
	var list corev1.PodList
	if err := kube.List(ctx, &list, client.InNamespace(of.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", of.Name, err)
	}
	return list.Items, nil
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// describe lists pods with their nodes, and for Pending ones the scheduler's message.
func describe(all []corev1.Pod) string {
	var b strings.Builder
	for i := range all {
		pod := &all[i]
		_, _ = fmt.Fprintf(&b, "; %s is %s on %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		if pod.DeletionTimestamp != nil {
			b.WriteString(" and terminating")
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				b.WriteString(": " + c.Message)
			}
		}
	}
	return b.String()
}
