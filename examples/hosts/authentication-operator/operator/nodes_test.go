// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/patch/workload"
	"github.com/solonode/sno/topology"
)

func node(name string, roles []string, taints ...corev1.Taint) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}, Spec: corev1.NodeSpec{Taints: taints}}
	for _, role := range roles {
		n.Labels["node-role.kubernetes.io/"+role] = ""
	}
	return n
}

func TestCountControlPlaneNodes(t *testing.T) {
	taint := func(key string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Effect: effect}
	}
	tolerations := workload.Tolerate(baseTolerations(), topology.ControlPlanePool)
	for _, test := range []struct {
		name            string
		roles           []string
		taints          []corev1.Taint
		vendored, stock int32
	}{
		{name: "master", roles: []string{"master"}, vendored: 1, stock: 1},
		{name: "master and worker", roles: []string{"master", "worker"}, vendored: 1, stock: 1},
		{name: "worker", roles: []string{"worker"}},
		{name: "only the newer role", roles: []string{"control-plane"}},
		{name: "the taint of the role", roles: []string{"master"}, taints: []corev1.Taint{taint("node-role.kubernetes.io/master", "NoSchedule")}, vendored: 1, stock: 1},
		{name: "the taint of the newer role", roles: []string{"master"}, taints: []corev1.Taint{taint("node-role.kubernetes.io/control-plane", "NoSchedule")}, stock: 1},
		{name: "the taint of another role", roles: []string{"master"}, taints: []corev1.Taint{taint("node-role.kubernetes.io/infra", "NoSchedule")}, stock: 1},
		{name: "another taint", roles: []string{"master"}, taints: []corev1.Taint{taint("example.com/mine", "NoExecute")}, stock: 1},
		{name: "another preference", roles: []string{"master"}, taints: []corev1.Taint{taint("example.com/mine", "PreferNoSchedule")}, vendored: 1, stock: 1},
		{name: "cordoned", roles: []string{"master"}, taints: []corev1.Taint{taint("node.kubernetes.io/unschedulable", "NoSchedule")}, vendored: 1, stock: 1},
		{name: "rebooting", roles: []string{"master"}, vendored: 1, stock: 1, taints: []corev1.Taint{
			taint("node.kubernetes.io/not-ready", "NoSchedule"), taint("node.kubernetes.io/unreachable", "NoExecute")}},
		{name: "being initialized", roles: []string{"master"}, taints: []corev1.Taint{taint("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule")}, vendored: 1, stock: 1},
	} {
		nodes := []corev1.Node{*node("n", test.roles, test.taints...)}
		if got := vendoredRules().count(nodes, tolerations); got != test.vendored {
			t.Errorf("%s: %d, want %d", test.name, got, test.vendored)
		}
		if got := stockRules().count(nodes, tolerations); got != test.stock {
			t.Errorf("%s, stock: %d, want %d", test.name, got, test.stock)
		}
	}
}
