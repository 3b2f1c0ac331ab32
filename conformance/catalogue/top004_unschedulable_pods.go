// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/conformance/report"
)

func unschedulablePods() Check {
	addPod := func(conditions ...corev1.PodCondition) func(*Input) bool {
		return onState(func(s *State) {
			s.Pods = append(s.Pods, corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: router.Namespace, Name: "control"}, Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: conditions},
			})
		})
	}
	return Check{
		ID: "SNO-TOP-004", Title: "No pod of OpenShift is unschedulable", Module: Topology, Level: Core, Tier: Static,
		Requirement: Requirement{"R-TOP-1", "whatever OpenShift runs fits on one node"},
		Run: func(in *Input) ([]report.Evidence, error) {
			var evidence []report.Evidence
			for _, pod := range in.State.Pods {
				if why := Unschedulable(&pod); why != "" && pod.Status.Phase == corev1.PodPending {
					evidence = append(evidence, found("Pod "+pod.Namespace+"/"+pod.Name, "status.conditions[PodScheduled]", "True", why, false))
				}
			}
			if len(evidence) == 0 {
				evidence = append(evidence, found("Pods of OpenShift", "unschedulable", "0", 0, true))
			}
			return evidence, nil
		},
		Controls: []Control{
			{Name: "an unschedulable pod", Change: addPod(corev1.PodCondition{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available",
			})},
			{Name: "a pod that is starting", MustPass: true, Change: addPod()},
		},
	}
}
