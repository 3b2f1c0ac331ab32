// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/conformance/report"
)

func guardPerMember() Check {
	onGuard := func(change func(*corev1.Pod)) func(*Input) bool {
		return func(in *Input) bool {
			guards := in.State.guards()
			if len(guards) == 0 {
				return false
			}
			change(guards[0])
			return true
		}
	}
	return Check{
		ID: "SNO-ETC-002", Title: "Every member of etcd has its guard where etcd has a quorum to lose", Module: etcdGuard, Level: Core, Tier: Static,
		Requirement: Requirement{"R-ETC-2", "the quorum guard has the size that the topology asks for, or is off"},
		Topologies:  etcdTopologies(), NotApplicable: guardNeeded,
		Run: func(in *Input) ([]report.Evidence, error) {
			nodes := map[string]bool{}
			for _, pod := range in.State.guards() {
				if PodReady(pod) {
					nodes[pod.Spec.NodeName] = true
				}
			}
			want := in.State.members()
			return []report.Evidence{
				found("Pods of "+guard.Namespace, "ready guards, on different nodes", fmt.Sprint(want), len(nodes), want > 0 && len(nodes) == want),
			}, nil
		},
		Controls: []Control{
			{Name: "a guard is missing", Change: onGuard(func(pod *corev1.Pod) { pod.Namespace = "openshift-etcd-operator" })},
			{Name: "a guard is not ready", Change: onGuard(func(pod *corev1.Pod) { pod.Status.Conditions = nil })},
			{Name: "an annotation on a guard", MustPass: true, Change: onGuard(func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{"example.com/reviewed": "yes"}
			})},
		},
	}
}
