// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/auth/internal/fixture"
)

func TestSchedulableControlPlaneNodes(t *testing.T) {
	const no, preferNo, execute = corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute
	taint := func(key string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Effect: effect}
	}
	reserved := corev1.Taint{Key: "example.com/reserved", Value: "db", Effect: no}
	notReady := []corev1.Taint{taint("node.kubernetes.io/not-ready", no), taint("node.kubernetes.io/not-ready", execute)}
	cordoned := taint("node.kubernetes.io/unschedulable", no)
	toleration := func(operator corev1.TolerationOperator, value string, effect corev1.TaintEffect) []corev1.Toleration {
		return []corev1.Toleration{master, controlPlane, {Key: reserved.Key, Operator: operator, Value: value, Effect: effect}}
	}
	for name, test := range map[string]struct {
		tolerations []corev1.Toleration
		counts      bool
		taints      []corev1.Taint
	}{
		"no taint":                 {nil, true, nil},
		"a worker of day 1":        {nil, true, []corev1.Taint{taint(master.Key, no), taint(controlPlane.Key, no)}},
		"not tolerated":            {[]corev1.Toleration{}, false, []corev1.Taint{taint("node-role.kubernetes.io/master", no)}},
		"cordoned":                 {nil, true, []corev1.Taint{cordoned}},
		"not ready":                {nil, true, notReady},
		"rebooting":                {nil, true, append(notReady, cordoned)},
		"unreachable":              {nil, true, []corev1.Taint{taint(fixture.Unreachable.Key, execute), taint("node.kubernetes.io/out-of-service", execute)}},
		"out of memory":            {nil, true, []corev1.Taint{taint("node.kubernetes.io/memory-pressure", no)}},
		"without a network":        {nil, true, []corev1.Taint{taint("node.kubernetes.io/network-unavailable", no)}},
		"being created by a cloud": {nil, true, []corev1.Taint{taint("node.cloudprovider.kubernetes.io/uninitialized", no)}},
		"shut down by a cloud":     {nil, true, []corev1.Taint{taint("node.cloudprovider.kubernetes.io/shutdown", no)}},
		"preferably not":           {nil, true, []corev1.Taint{taint("UpdateInProgress", preferNo)}},
		"reserved":                 {nil, false, []corev1.Taint{reserved}},
		"reserved, NoExecute":      {nil, false, []corev1.Taint{taint(reserved.Key, execute)}},
		"reserved and cordoned":    {nil, false, []corev1.Taint{reserved, cordoned}},
		"tolerated by key":         {toleration(corev1.TolerationOpExists, "", ""), true, []corev1.Taint{reserved}},
		"tolerated by value":       {toleration("", "db", no), true, []corev1.Taint{reserved}},
		"tolerated, another value": {toleration(corev1.TolerationOpEqual, "web", ""), false, []corev1.Taint{reserved}},
		"tolerated, other effect":  {toleration(corev1.TolerationOpExists, "", execute), false, []corev1.Taint{reserved}},
		"everything tolerated":     {[]corev1.Toleration{{Operator: corev1.TolerationOpExists}}, true, []corev1.Taint{reserved}},
		"a newer operator":         {toleration("Gt", "7", ""), false, []corev1.Taint{reserved}},
	} {
		if test.tolerations == nil {
			test.tolerations = []corev1.Toleration{master, controlPlane}
		}
		node, worker := fixture.ControlPlaneNode(), corev1.Node{}
		node.Spec.Taints = test.taints
		want := int32(1)
		if test.counts {
			want = 2
		}
		if got := auth.SchedulableControlPlaneNodes([]corev1.Node{fixture.ControlPlaneNode(), node, worker}, test.tolerations); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
