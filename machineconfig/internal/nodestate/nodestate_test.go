// SPDX-License-Identifier: Apache-2.0

package nodestate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/machineconfig/internal/nodestate"
)

func TestHealthy(t *testing.T) {
	const absent = corev1.ConditionStatus("")
	all := []corev1.ConditionStatus{corev1.ConditionTrue, absent, corev1.ConditionFalse, corev1.ConditionUnknown}
	kinds := []corev1.NodeConditionType{
		corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable,
	}
	for state := range 4 * 4 * 4 * 4 * 4 {
		node, rest, want := &corev1.Node{}, state, true
		for _, kind := range kinds {
			status := all[rest%4]
			if rest /= 4; status != absent {
				node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status})
			}
			want = want && (kind == corev1.NodeReady && status == corev1.ConditionTrue ||
				kind != corev1.NodeReady && (status == absent || status == corev1.ConditionFalse))
		}
		if nodestate.Healthy(node) != want {
			t.Errorf("%+v: want %t", node.Status.Conditions, want)
		}
	}
}
