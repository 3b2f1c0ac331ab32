// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clientBackoff is the longest pause of a client of Kubernetes that cannot watch: half a minute, and as much jitter.
const clientBackoff = time.Minute

// newWorkload creates a Deployment in a namespace of its own, waits until its pod has a node, and deletes the
// namespace. It returns what does not follow, or "". Whether the image runs does not matter. Error: ErrInconclusive, if
// the cluster or the account's permissions prevent it.
func (c *targetCluster) newWorkload(ctx context.Context) (missing string, err error) {
	run := rand.String(8)
	made, err := c.set.CoreV1().Namespaces().Create(ctx, copyNamespace(run), metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create a namespace: %w", policyError(err))
	}
	namespace := made.Name
	defer func() {
		if missing != "" || err != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.target.Times.Cleanup)
			defer cancel()
			err = errors.Join(err, deleteNamespace(ctx, c.set, namespace))
		}
	}()
	deployments := c.set.AppsV1().Deployments(namespace)
	steps := []struct {
		missing string
		done    func(ctx context.Context) (bool, error)
	}{
		{"a new namespace has no service account", func(ctx context.Context) (bool, error) {
			_, err := c.set.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			return true, err
		}},
		{"a Deployment cannot be created", func(ctx context.Context) (bool, error) {
			copied := shapeOf(anywhere(), nil, programOf(c.target.Image, c.before.Pods), run)
			_, err := deployments.Create(ctx, copied.deployment, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) { // the answer was lost
				err = nil
			}
			return true, err
		}},
		{"no pod of a new Deployment has a node", func(ctx context.Context) (bool, error) {
			live, err := deployments.Get(ctx, anywhere().Name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			if why := rejectedPods(live); why != "" {
				return false, fmt.Errorf("%w: %s", ErrInconclusive, why)
			}
			pods, err := c.set.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			return err == nil && len(pods.Items) > 0 && pods.Items[0].Spec.NodeName != "", err
		}},
		{"a namespace cannot be deleted", func(ctx context.Context) (bool, error) {
			return true, deleteNamespace(ctx, c.set, namespace)
		}},
		{"a deleted namespace remains", func(ctx context.Context) (bool, error) {
			_, err := c.set.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}},
	}
	done := 0
	_, err = within(ctx, c.target.Times.Poll, c.target.Times.Settle+clientBackoff, func(ctx context.Context) (bool, error) {
		for ; done < len(steps); done++ {
			ok, err := steps[done].done(ctx)
			if err != nil {
				if rejection := policyError(err); errors.Is(rejection, ErrInconclusive) {
					return false, rejection
				}
				return false, nil // what does not follow is the result
			}
			if !ok {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil || done == len(steps) {
		return "", err
	}
	return steps[done].missing, nil
}

// anywhere is a Deployment whose pod any node may run.
func anywhere() *appsv1.Deployment {
	labels := map[string]string{"app": "after-outage"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: labels["app"]},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
			},
		},
	}
}
