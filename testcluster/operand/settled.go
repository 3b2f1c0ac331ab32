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
	// WaitTimeout bounds every wait. What is waited for takes a second or two on simulated nodes, and more on a machine that is busy; it
	// takes for ever only when the scheduler finds no place or a budget allows nothing.
	WaitTimeout = 2 * time.Minute
)

// ErrNotSettled says that a Deployment did not become what it must be.
var ErrNotSettled = errors.New("does not come to rest as it must be")

// WaitSettled waits until all Deployments are as wanted and rolled out: as many pods as wanted and no others, all ready, on the pool where
// they belong and several of them on different nodes. Otherwise the error says what is wrong, and of Pending pods why.
func WaitSettled(ctx context.Context, kube client.Client, want []scenario.Operand) error {
	var wrong error
	err := wait.PollUntilContextTimeout(ctx, poll, WaitTimeout, true, func(ctx context.Context) (bool, error) {
		var errs []error
		for _, w := range want {
			errs = append(errs, unsettled(ctx, kube, w))
		}
		now := errors.Join(errs...)
		if ctx.Err() == nil { // or all that is wrong is that the time is over
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

// Pods are the pods of Deployments, each with its name.
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

// unsettled says what is wrong with one Deployment, or nil.
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

// nodeOf is the node that a pod is ready on, which must be of the pool.
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

// describe says where pods are, and why those are Pending that are, in the scheduler's own words.
func describe(all []corev1.Pod) string {
	var b strings.Builder
	for i := range all {
		pod := &all[i]
		_, _ = fmt.Fprintf(&b, "; %s is %s on %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		if pod.DeletionTimestamp != nil {
			b.WriteString(" and on its way out")
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				b.WriteString(": " + c.Message)
			}
		}
	}
	return b.String()
}
