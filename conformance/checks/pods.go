// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func selects(selector *metav1.LabelSelector, on map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && selector != nil && s.Matches(labels.Set(on))
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func unschedulable(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			first, _, _ := strings.Cut(condition.Message, ". ")
			return first
		}
	}
	return ""
}
