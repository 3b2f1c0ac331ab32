// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

// clientBackoff is the longest pause of a client of Kubernetes that cannot watch: half a minute, and as much jitter.
const clientBackoff = time.Minute

// newWorkload creates a Deployment in a namespace of its own, waits until its pod has a node, and deletes the
// namespace. It returns what does not follow, or "". Whether the image runs does not matter. Error:
// catalogue.ErrInconclusive, if the cluster or the account's permissions prevent it.
func (r *Runner) newWorkload(ctx context.Context, before *catalogue.State) (missing string, err error) {
	made, err := r.set.CoreV1().Namespaces().Create(ctx, copyNamespace(r.id), metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create a namespace: %w", policyError(err))
	}
	namespace := made.Name
	defer func() {
		if missing != "" || err != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.target.Times.Cleanup)
			defer cancel()
			err = errors.Join(err, deleteNamespace(ctx, r.set, namespace))
		}
	}()
	deployments := r.set.AppsV1().Deployments(namespace)
	steps := []struct {
		missing string
		done    func(ctx context.Context) (bool, error)
	}{
		{"a new namespace has no service account", func(ctx context.Context) (bool, error) {
			_, err := r.set.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			return true, err
		}},
		{"a Deployment cannot be created", func(ctx context.Context) (bool, error) {
			copied := shapeOf(anywhere(), nil, programOf(r.target.Image, before.Pods), r.id)
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
				return false, fmt.Errorf("%w: %s", catalogue.ErrInconclusive, why)
			}
			pods, err := r.set.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			return err == nil && len(pods.Items) > 0 && pods.Items[0].Spec.NodeName != "", err
		}},
		{"a namespace cannot be deleted", func(ctx context.Context) (bool, error) {
			return true, deleteNamespace(ctx, r.set, namespace)
		}},
		{"a deleted namespace remains", func(ctx context.Context) (bool, error) {
			_, err := r.set.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}},
	}
	done := 0
	_, err = cluster.Within(ctx, r.target.Times.Poll, r.target.Times.Settle+clientBackoff, func(ctx context.Context) (bool, error) {
		for ; done < len(steps); done++ {
			ok, err := steps[done].done(ctx)
			if err != nil {
				if rejection := policyError(err); errors.Is(rejection, catalogue.ErrInconclusive) {
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
