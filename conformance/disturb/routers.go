// SPDX-License-Identifier: Apache-2.0

package disturb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

var errNoRouter = errors.New("no pod of a router exists")

// DeleteRouters deletes all pods of the default router, and waits until they are gone and others are available. Checks
// do not use it.
func (d *Disturber) DeleteRouters(ctx context.Context) (*catalogue.Disruption, error) {
	return d.disrupt(ctx, "Deleting the pods of the default router", func(ctx context.Context, all []appsv1.Deployment) (map[string]string, error) {
		state, err := d.read(ctx)
		if err != nil {
			return nil, err
		}
		deleted := map[types.UID]bool{}
		for i := range all {
			if !catalogue.IsRouter(&all[i]) {
				continue
			}
			for _, pod := range state.PodsOf(&all[i]) {
				err := d.Set.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
				if err != nil && !apierrors.IsNotFound(err) {
					return nil, fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
				}
				deleted[pod.UID] = true
			}
		}
		if len(deleted) == 0 {
			return nil, errNoRouter
		}
		_, err = cluster.Within(ctx, d.Target.Times.Poll, d.Target.Times.Settle, func(ctx context.Context) (bool, error) {
			state, err := d.read(ctx)
			return err == nil && !slices.ContainsFunc(state.Pods, func(pod corev1.Pod) bool { return deleted[pod.UID] }), err
		})
		return nil, err
	})
}
