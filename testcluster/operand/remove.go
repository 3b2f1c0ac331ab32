// SPDX-License-Identifier: Apache-2.0

package operand

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/embedded"
)

// Remove deletes a pod at once, as when no kubelet can end it in order, once the pod's ReplicaSet has counted it (see
// the package's documentation). A pod that is gone is no error.
func Remove(ctx context.Context, c *embedded.Cluster, pod *corev1.Pod) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		var whole bool
		whole, last = counted(ctx, c, pod)
		return whole, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the ReplicaSet of pod %s counts it: %w", pod.Name, errors.Join(err, last))
	}
	err = c.Client().Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	return nil
}

// counted reports whether the ReplicaSet of a pod, if it has one, has counted all its pods.
func counted(ctx context.Context, c *embedded.Cluster, pod *corev1.Pod) (bool, error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "ReplicaSet" {
		return true, nil
	}
	set := &appsv1.ReplicaSet{}
	if err := c.Client().Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, set); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	var all corev1.PodList
	if err := c.Client().List(ctx, &all, client.InNamespace(pod.Namespace)); err != nil {
		return false, err
	}
	its := slices.DeleteFunc(all.Items, func(p corev1.Pod) bool {
		ended := p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		return ended || !metav1.IsControlledBy(&p, set)
	})
	return int(set.Status.Replicas) == len(its), nil
}
