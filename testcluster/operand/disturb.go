// SPDX-License-Identifier: Apache-2.0

package operand

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

// RevisionAnnotation is the annotation that Roll changes.
const RevisionAnnotation = "revision"

// ErrDrain is returned when a drain does not complete.
var ErrDrain = errors.New("the drain does not end")

// Roll changes an annotation of the pod templates: a rollout without an upgrade. WaitSettled returns when the rollouts
// are complete.
func Roll(ctx context.Context, c *embedded.Cluster, operands []scenario.Operand, revision string) error {
	body := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, RevisionAnnotation, revision)
	for _, o := range operands {
		_, err := c.Clientset().AppsV1().Deployments(o.Namespace).Patch(ctx, o.Name, types.StrategicMergePatchType, []byte(body),
			metav1.PatchOptions{FieldManager: "kubectl-rollout"})
		if err != nil {
			return fmt.Errorf("roll %s: %w", o, err)
		}
	}
	return nil
}

// Drain cordons a node and evicts every pod that a controller recreates elsewhere, as kubectl drain does: it retries
// while a budget refuses, and returns when the pods are gone, or an error after WaitTimeout.
func Drain(ctx context.Context, c *embedded.Cluster, node string) error {
	if err := cordon(ctx, c, node, true); err != nil {
		return err
	}
	const again = 200 * time.Millisecond // 5 seconds in kubectl
	var left, refused error
	err := wait.PollUntilContextTimeout(ctx, again, WaitTimeout, true, func(ctx context.Context) (bool, error) {
		on, err := evictable(ctx, c, node)
		if err != nil {
			return false, err
		}
		left = fmt.Errorf("%d pods are left%s", len(on), describe(on))
		for i := range on {
			if on[i].DeletionTimestamp != nil {
				continue
			}
			switch err := evict(ctx, c, &on[i]); {
			case apierrors.IsTooManyRequests(err):
				refused = fmt.Errorf("the eviction of %s was refused: %w", on[i].Name, err)
			case err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
				return false, fmt.Errorf("evict %s: %w", on[i].Name, err)
			}
		}
		return len(on) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("%w on %s: %w", ErrDrain, node, errors.Join(err, left, refused))
	}
	return nil
}

// Uncordon makes a node schedulable.
func Uncordon(ctx context.Context, c *embedded.Cluster, node string) error {
	return cordon(ctx, c, node, false)
}

func cordon(ctx context.Context, c *embedded.Cluster, node string, closed bool) error {
	body := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, closed)
	_, err := c.Clientset().CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "drain"})
	if err != nil {
		return fmt.Errorf("cordon node %s (%t): %w", node, closed, err)
	}
	return nil
}

// evictable lists the pods of a node that a controller recreates elsewhere. Those of a DaemonSet return to the node at
// once.
func evictable(ctx context.Context, c *embedded.Cluster, node string) ([]corev1.Pod, error) {
	list, err := c.Clientset().CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	var found []corev1.Pod
	for _, pod := range list.Items {
		if owner := metav1.GetControllerOf(&pod); owner != nil && owner.Kind != "DaemonSet" {
			found = append(found, pod)
		}
	}
	return found, nil
}

func evict(ctx context.Context, c *embedded.Cluster, pod *corev1.Pod) error {
	return c.Clientset().PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	})
}

// Restart simulates a restart of a node for the rest of the cluster: the node is NotReady, its pods are deleted, and
// then the node is Ready again, with another boot ID. No operand may return to the node while it is NotReady.
func Restart(ctx context.Context, c *embedded.Cluster, node string) error {
	ctx, cancel := context.WithTimeout(ctx, WaitTimeout)
	defer cancel()
	if err := c.SetNodeReady(ctx, node, false); err != nil {
		return err
	}
	var on []corev1.Pod
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		var err error
		if on, err = evictable(ctx, c, node); err != nil {
			return false, err
		}
		for i := range on {
			if err := Remove(ctx, c, &on[i]); err != nil {
				return false, err
			}
		}
		return len(on) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("remove the pods of node %s: %w%s", node, err, describe(on))
	}
	if err := c.SetBootID(ctx, node); err != nil {
		return err
	}
	return c.SetNodeReady(ctx, node, true)
}
