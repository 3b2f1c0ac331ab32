// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	errNode       = errors.New("the node is not Ready")
	errDeployment = errors.New("no pod of the Deployment runs")
	errMirror     = errors.New("a mirror pod is not Ready")
)

// WaitForNodeReady waits until the kubelet has registered the node and it is Ready.
func (n *Node) WaitForNodeReady(ctx context.Context) error {
	return until(ctx, "node "+n.Name()+" is Ready", func(ctx context.Context) error {
		node, err := n.kube.CoreV1().Nodes().Get(ctx, n.Name(), metav1.GetOptions{})
		if err != nil {
			return err //nolint:wrapcheck // until wraps it
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			} else if condition.Type == corev1.NodeReady {
				return fmt.Errorf("%w: %s: %s", errNode, condition.Reason, condition.Message)
			}
		}
		return fmt.Errorf("%w: its kubelet has not reported yet", errNode)
	})
}

const pauseImage = "registry.k8s.io/pause:3.10"

// RunDeployment creates a Deployment and waits until its pod runs, which needs the controller manager, the scheduler
// and the kubelet.
func (n *Node) RunDeployment(ctx context.Context) error {
	labels := map[string]string{"app": "sno-deployment"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: labels["app"]},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "pause", Image: pauseImage, ImagePullPolicy: corev1.PullNever}},
				},
			},
		},
	}
	if _, err := n.kube.AppsV1().Deployments(deployment.Namespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create a Deployment: %w", err)
	}
	return until(ctx, "a Deployment's pod runs", func(ctx context.Context) error {
		live, err := n.kube.AppsV1().Deployments(deployment.Namespace).Get(ctx, deployment.Name, metav1.GetOptions{})
		if err != nil {
			return err //nolint:wrapcheck // until wraps it
		}
		if live.Status.AvailableReplicas == 1 {
			return nil
		}
		pods, err := n.kube.CoreV1().Pods(deployment.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + labels["app"]})
		if err != nil || len(pods.Items) == 0 {
			return fmt.Errorf("%w: none was created: conditions %v: %w", errDeployment, live.Status.Conditions, err)
		}
		return fmt.Errorf("%w: %s: %v %v", errDeployment, pods.Items[0].Status.Phase, pods.Items[0].Status.Conditions, pods.Items[0].Status.ContainerStatuses)
	})
}

// WaitForMirrorPods waits until the mirror pods of all components are Ready, and returns their names.
func (n *Node) WaitForMirrorPods(ctx context.Context) ([]string, error) {
	var names []string
	err := until(ctx, "the mirror pods of the control plane are Ready", func(ctx context.Context) error {
		names = nil
		pods, err := n.kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Name()})
		if err != nil {
			return err //nolint:wrapcheck // until wraps it
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if _, static := pod.Annotations[corev1.MirrorPodAnnotationKey]; !static {
				continue
			}
			if !isReady(pod) {
				return fmt.Errorf("%w: %s/%s: %s %v", errMirror, pod.Namespace, pod.Name, pod.Status.Phase, pod.Status.ContainerStatuses)
			}
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
		if len(names) < components {
			return fmt.Errorf("%w: only %v", errMirror, names)
		}
		return nil
	})
	return names, err
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
