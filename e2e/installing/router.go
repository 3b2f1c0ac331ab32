// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	routerNamespace = "openshift-ingress"
	routerName      = "router-default"
	masterRole      = "node-role.kubernetes.io/master"
)

var errRouter = errors.New("the router is not on the node of its DNS record")

// router checks that the router stays on the control-plane node although there is a worker, also when its pod is
// replaced (R-ING-3, R-ING-5).
func router(ctx context.Context, m *Machine) error {
	config, err := m.client()
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err := m.wait(ctx, workerReady); err != nil {
		return err
	}
	before, err := routerPods(ctx, kube, nil)
	if err != nil {
		return err
	}
	m.logf("  the router is on %s, and there is a worker", hostname)
	for uid, name := range before {
		if err := kube.CoreV1().Pods(routerNamespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
			return fmt.Errorf("delete the router's pod: %w", err)
		}
	}
	if _, err := routerPods(ctx, kube, before); err != nil {
		return err
	}
	m.logf("  a deleted pod is replaced there")
	return nil
}

// routerPods waits until the router is available on the control-plane node without its former pods, and returns its
// pods by UID.
func routerPods(ctx context.Context, kube *kubernetes.Clientset, former map[types.UID]string) (map[types.UID]string, error) {
	deployment, err := kube.AppsV1().Deployments(routerNamespace).Get(ctx, routerName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("find the router: %w", err)
	}
	if _, pinned := deployment.Spec.Template.Spec.NodeSelector[masterRole]; !pinned {
		return nil, fmt.Errorf("%w: it selects nodes with %v, not %s", errRouter, deployment.Spec.Template.Spec.NodeSelector, masterRole)
	}
	found := map[types.UID]string{}
	return found, until(ctx, "the router is available", func(ctx context.Context) error {
		pods, err := kube.CoreV1().Pods(routerNamespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(deployment.Spec.Selector)})
		if err != nil {
			return err //nolint:wrapcheck // until wraps it
		}
		clear(found)
		for _, pod := range pods.Items {
			_, old := former[pod.UID]
			ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
			if old || !ready || pod.Spec.NodeName != hostname {
				return fmt.Errorf("%w: pod %s is on %q, Ready %t, a former one %t", errRouter, pod.Name, pod.Spec.NodeName, ready, old)
			}
			found[pod.UID] = pod.Name
		}
		if deployment.Spec.Replicas == nil || len(found) != int(*deployment.Spec.Replicas) || len(found) == 0 {
			return fmt.Errorf("%w: it has %d pods", errRouter, len(found))
		}
		return nil
	})
}
