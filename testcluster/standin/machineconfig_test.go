// SPDX-License-Identifier: Apache-2.0

package standin_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/standin/machineconfig"
)

func machineConfiguration() *operatorv1.MachineConfiguration {
	return &operatorv1.MachineConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
}

func poolNode(name string) *corev1.Node {
	role := map[byte]string{'m': "master", 'w': "worker"}[name[0]]
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/" + role: ""}}}
}

// machineConfigSite has nodes and pools.
func machineConfigSite(t *testing.T, mode configv1.TopologyMode, maxUnavailable int32, nodes ...string) *site {
	t.Helper()
	s := newSite(t, []string{"default"}, []client.Object{&operatorv1.MachineConfiguration{}, &mcfgv1.MachineConfigPool{}, &corev1.Pod{}},
		// The typed object would set more fields.
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "MachineConfiguration",
			"metadata": map[string]any{"name": "cluster"}, "spec": map[string]any{"managementState": "Managed"}}})
	s.topology(mode, many)
	for _, name := range nodes {
		s.create(poolNode(name))
		changeStatus(s, poolNode(name), func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		})
	}
	for _, role := range []string{"master", "worker"} {
		pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: role}}
		pool.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + role: ""}}
		pool.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(maxUnavailable))
		s.create(pool)
	}
	return s
}

func (s *site) startMachineConfig(stock bool) {
	s.Helper()
	s.start(&machineconfig.Options{Stock: stock})
}

// daemon writes an annotation of a node as its daemon does.
func (s *site) daemon(node, name, value string) {
	s.Helper()
	change(s, poolNode(node), func(n *corev1.Node) {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, "machineconfiguration.openshift.io/"+name, value)
	})
}

// nodes waits until an annotation of nodes has these values, and "cordoned" for a node that is.
func (s *site) nodes(name string, want map[string]string) {
	s.Helper()
	s.eventually(name+" of the nodes", func() error {
		got := map[string]string{}
		for node := range want {
			n := poolNode(node)
			s.get(n)
			got[node] = n.Annotations["machineconfiguration.openshift.io/"+name]
			if n.Spec.Unschedulable {
				got[node] = strings.TrimSpace(got[node] + " cordoned")
			}
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("they are %v, want %v", got, want) //nolint:err113 // a test
		}
		return nil
	})
}

// A node is drained where others take its pods, and as many at once as maxUnavailable permits while the control plane
// keeps its majority; on a single node only the request is acknowledged.
func TestMachineConfigDrains(t *testing.T) {
	s := machineConfigSite(t, many, 3, "m0", "m1", "m2", "w0")
	s.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "x", UID: "x", Controller: ptr.To(true)},
		}},
		Spec: corev1.PodSpec{NodeName: "w0", TerminationGracePeriodSeconds: ptr.To[int64](0), Containers: []corev1.Container{{Name: "x", Image: "x"}}},
	})
	s.startMachineConfig(false)
	s.nodes("controlPlaneTopology", map[string]string{"m0": "HighlyAvailable", "w0": "HighlyAvailable"})
	for _, node := range []string{"m0", "m1", "w0"} {
		s.daemon(node, "desiredDrain", "drain-one")
	}
	s.nodes("lastAppliedDrain", map[string]string{"m0": "drain-one cordoned", "m1": "", "w0": "drain-one cordoned"})
	if s.get(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}) {
		t.Error("the pod of the drained node is left")
	}
	s.silent()
	// A drain goes on in another process.
	s.end()
	s.startMachineConfig(false)
	s.daemon("m0", "desiredDrain", "uncordon-one")
	s.nodes("lastAppliedDrain", map[string]string{"m0": "uncordon-one", "m1": "drain-one cordoned"})
	s.daemon("m2", "desiredDrain", "reboot-two")
	s.conditions(func() (all []operatorv1.OperatorCondition) {
		live := machineConfiguration()
		s.get(live)
		for _, c := range live.Status.Conditions {
			all = append(all, operatorv1.OperatorCondition{Type: c.Type, Status: operatorv1.ConditionStatus(c.Status), Reason: c.Reason})
		}
		return all
	}, map[string]string{"DrainControllerDegraded": "True Error"})
	s.daemon("m2", "desiredDrain", "uncordon-two")
	s.daemon("m1", "desiredDrain", "uncordon-one") // a drained node may restart, so that others wait
	s.topology(single, many)
	s.nodes("controlPlaneTopology", map[string]string{"m0": "SingleReplica"})
	s.daemon("m0", "desiredDrain", "drain-three")
	s.nodes("lastAppliedDrain", map[string]string{"m0": "drain-three", "m2": "uncordon-two"})
	s.must(s.admin.Patch(t.Context(), machineConfiguration(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"managementState":"Unmanaged"}}`))))
	s.daemon("m0", "desiredDrain", "drain-four")
	s.silent()
	s.nodes("lastAppliedDrain", map[string]string{"m0": "drain-three"})
}

// Today's controller drains every node that requests it, at once and with any topology (U-MCO-1), and reports nothing.
func TestMachineConfigStock(t *testing.T) {
	s := machineConfigSite(t, single, 1, "m0", "w0")
	s.startMachineConfig(true)
	for _, node := range []string{"m0", "w0"} {
		s.daemon(node, "desiredDrain", "drain-one")
	}
	s.nodes("lastAppliedDrain", map[string]string{"m0": "drain-one cordoned", "w0": "drain-one cordoned"})
	s.daemon("m0", "desiredDrain", "uncordon-one")
	s.nodes("lastAppliedDrain", map[string]string{"m0": "uncordon-one"})
	s.silent()
	if live := machineConfiguration(); !s.get(live) || len(live.Status.Conditions) > 0 {
		t.Errorf("conditions %v", live.Status.Conditions)
	}
}
