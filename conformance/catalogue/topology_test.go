// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestTolerates(t *testing.T) {
	taint := corev1.Taint{Key: masterRole, Effect: corev1.TaintEffectNoSchedule}
	for name, test := range map[string]struct {
		toleration corev1.Toleration
		want       bool
	}{
		"the key":              {corev1.Toleration{Key: masterRole, Operator: corev1.TolerationOpExists}, true},
		"the key and effect":   {corev1.Toleration{Key: masterRole, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, true},
		"another effect":       {corev1.Toleration{Key: masterRole, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, false},
		"another key":          {corev1.Toleration{Key: controlPlaneRole, Operator: corev1.TolerationOpExists}, false},
		"everything":           {corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		"the value of nothing": {corev1.Toleration{Key: masterRole, Operator: corev1.TolerationOpEqual}, true},
		"another value":        {corev1.Toleration{Key: masterRole, Operator: corev1.TolerationOpEqual, Value: "x"}, false},
	} {
		if got := tolerates([]corev1.Toleration{test.toleration}, taint); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
