// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/fit"
	"github.com/solonode/sno/machineconfig/internal/fixture"
	"github.com/solonode/sno/topology/topologytest"
)

func sized(n corev1.Node, cores string) corev1.Node {
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cores), corev1.ResourcePods: resource.MustParse("10")}
	return n
}

// running returns inputs with one control-plane node, three workers with 4 cores, and a pod with so many cores on each
// of the nodes.
func running(cores string, on ...string) machineconfig.Inputs {
	in := machineconfig.Inputs{
		Cluster: fixture.ClusterOf(topologytest.SR), Policy: machineconfig.DrainWorkers, Node: "w1",
		Nodes: []corev1.Node{
			sized(fixture.Node("m1", "master", "control-plane"), "1"), sized(fixture.Node("w1", "worker"), "4"), sized(fixture.Node("w2", "worker"), "4"), sized(fixture.Node("w3", "worker"), "4"),
		},
		Pods: []corev1.Pod{}, Budgets: []policyv1.PodDisruptionBudget{}, StatefulSets: []appsv1.StatefulSet{},
	}
	set := appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "s"}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cores)}}}}
	in.ReplicaSets = []appsv1.ReplicaSet{set}
	for _, at := range on {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s-" + at,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "s", UID: "s", Controller: ptr.To(true)}}}}
		p.Spec = *set.Spec.Template.Spec.DeepCopy()
		p.Spec.NodeName = at
		in.Pods = append(in.Pods, p)
	}
	return in
}

// TestDrainRequired shows R-MCO-2: with a SingleReplica control plane no node is drained by default.
func TestDrainRequired(t *testing.T) {
	for _, test := range []struct {
		name   string
		in     machineconfig.Inputs
		change func(*machineconfig.Inputs)
		want   string
	}{
		{"only the topology", machineconfig.Inputs{Cluster: fixture.ClusterOf(topologytest.SR)}, nil, machineconfig.ReasonNowhereToGo},
		{"the control-plane node of plain Kubernetes", running("1", "w2"), func(in *machineconfig.Inputs) {
			in.Node, in.Nodes[0] = "m1", sized(fixture.Node("m1", "control-plane"), "1")
		}, machineconfig.ReasonControlPlaneNode},
		{"a node with both roles", running("1", "w2"), func(in *machineconfig.Inputs) {
			in.Node, in.Nodes[0] = "m1", sized(fixture.Node("m1", "master", "worker"), "1")
		}, machineconfig.ReasonControlPlaneNode},
		{"nodes not read", running("1"), func(in *machineconfig.Inputs) { in.Nodes = nil }, fit.ReasonNotRead},
		{"pods not read", running("1"), func(in *machineconfig.Inputs) { in.Pods = nil }, fit.ReasonNotRead},
		{"another one is drained", running("2", "w1", "w2", "w3"), func(in *machineconfig.Inputs) { in.Draining = []string{"w2"} }, fit.ReasonNotEnoughRoom},
		{"another one is drained, with room for both", running("2", "w1", "w2"), func(in *machineconfig.Inputs) {
			in.Draining = []string{"w2", "w1"}
		}, fit.ReasonRoomElsewhere},
		{"the control-plane node restarts meanwhile", running("1", "w1", "m1"), func(in *machineconfig.Inputs) {
			in.Draining = []string{"m1", "gone"}
		}, fit.ReasonRoomElsewhere},
		{"the control-plane node restarts meanwhile, with a pod that fits nowhere", running("3", "w1", "m1", "w2"), func(in *machineconfig.Inputs) {
			in.Nodes[0], in.Draining = sized(in.Nodes[0], "4"), []string{"m1"}
		}, fit.ReasonRoomElsewhere},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.change != nil {
				test.change(&test.in)
			}
			got, err := machineconfig.DrainRequired(test.in)
			if got.Reason != test.want || got.Required != (test.want == fit.ReasonRoomElsewhere) || got.Message == "" || err != nil {
				t.Errorf("%+v, %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestParseRequest(t *testing.T) {
	for value, want := range map[string]machineconfig.Request{
		"drain-rendered-worker-0a1b":    {machineconfig.VerbDrain, "rendered-worker-0a1b"},
		"uncordon-rendered-master-0a1b": {machineconfig.VerbUncordon, "rendered-master-0a1b"},
		"drain-uncordon":                {machineconfig.VerbDrain, "uncordon"},
		"drain-x.y":                     {machineconfig.VerbDrain, "x.y"},
	} {
		if got, err := machineconfig.ParseRequest(value); err != nil || got != want || got.String() != value {
			t.Errorf("%q is %+v, %v; want %+v", value, got, err, want)
		}
	}
	for _, value := range []string{
		"", " ", "-", "drain", "uncordon", "drain-", "-config", "Drain-config", "drain config", " drain-config", "drain-config ",
		"drain-con fig", "drain-config\n", "drain--config", "drained-config", "undrain-config", "reboot-config", "cordon-config", "true",
		"drain-Config", "drain-конфиг", "drain-\x00", "\xff\xfe", `{"verb":"drain"}`, "uncordon_config",
		"drain-" + strings.Repeat("x", 254), strings.Repeat("drain-", 50000),
	} {
		got, err := machineconfig.ParseRequest(value)
		if !errors.Is(err, machineconfig.ErrRequest) || got != (machineconfig.Request{}) || len(err.Error()) > 600 {
			t.Errorf("%.80q is %+v, %.700v; want ErrRequest", value, got, err)
		}
	}
}

// TestRequested also checks MayRestart: a node may restart between the acknowledgements of a drain and an uncordon.
func TestRequested(t *testing.T) {
	drain, uncordon := &machineconfig.Request{machineconfig.VerbDrain, "a"}, &machineconfig.Request{machineconfig.VerbUncordon, "a"}
	for name, test := range map[string]struct {
		desired, lastApplied string
		want                 *machineconfig.Request
		fails, mayRestart    bool
	}{
		"nothing":                   {"", "", nil, false, false},
		"the first request":         {"drain-a", "", drain, false, false},
		"may restart":               {"drain-a", "drain-a", nil, false, true},
		"restarted":                 {"uncordon-a", "drain-a", uncordon, false, true},
		"uncordoned":                {"uncordon-a", "uncordon-a", nil, false, false},
		"another drain":             {"drain-a", "uncordon-b", drain, false, false},
		"the next config":           {"drain-a", "drain-b", drain, false, false},
		"no request":                {"", "drain-a", nil, false, false},
		"invalid acknowledgement":   {"drain-a", "garbage", drain, false, false},
		"invalid request":           {"garbage", "drain-a", nil, true, true},
		"invalid, and acknowledged": {"garbage", "garbage", nil, false, false},
	} {
		annotations := map[string]string{"other": "value"}
		if test.desired != "" {
			annotations[machineconfig.DesiredDrainAnnotation] = test.desired
		}
		if test.lastApplied != "" {
			annotations[machineconfig.LastAppliedDrainAnnotation] = test.lastApplied
		}
		got, err := machineconfig.Requested(annotations)
		if (err != nil) != test.fails || (err != nil && !errors.Is(err, machineconfig.ErrRequest)) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" || machineconfig.MayRestart(annotations) != test.mayRestart {
			t.Errorf("%s: may restart: %v, want %v (-want +got):\n%s", name, !test.mayRestart, test.mayRestart, diff)
		}
	}
	for _, annotations := range []map[string]string{nil, {machineconfig.DesiredDrainAnnotation: ""}} {
		if got, err := machineconfig.Requested(annotations); got != nil || err != nil {
			t.Errorf("%v: %v, %v", annotations, got, err)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	for _, value := range []string{"drain-a", "uncordon-a.b", "drain-", "-", "drain-\xff"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if request, err := machineconfig.ParseRequest(value); err == nil && request.String() != value {
			t.Errorf("%q is written as %q", value, request)
		}
	})
}
