package machineconfig_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/fit"
)

func sized(n corev1.Node, cores string) corev1.Node {
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cores), corev1.ResourcePods: resource.MustParse("10")}
	return n
}

// running are inputs with one control-plane node, three workers of four cores, and a pod of that many cores on each of the nodes.
func running(cores string, on ...string) machineconfig.Inputs {
	in := machineconfig.Inputs{
		Cluster: clusterOf(sr), Policy: machineconfig.DrainWorkers, Node: "w1",
		Nodes: []corev1.Node{
			sized(node("m1", "master", "control-plane"), "1"), sized(node("w1", "worker"), "4"), sized(node("w2", "worker"), "4"), sized(node("w3", "worker"), "4"),
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

// TestDrainRequired shows R-MCO-2: no node of a control plane of one is drained unless a person wants its workers drained.
func TestDrainRequired(t *testing.T) {
	asked := func(in machineconfig.Inputs, change func(*machineconfig.Inputs)) machineconfig.Inputs {
		change(&in)
		return in
	}
	full := running("3", "w1", "w2", "w3")
	for _, test := range []struct {
		name string
		in   machineconfig.Inputs
		want string
	}{
		{"default policy", asked(running("1", "w1"), func(in *machineconfig.Inputs) { in.Policy = "" }), machineconfig.DrainNowhereToGo},
		{"never", asked(running("1", "w1"), func(in *machineconfig.Inputs) { in.Policy = machineconfig.DrainNever }), machineconfig.DrainNowhereToGo},
		{"vendored, nothing but the topology", machineconfig.Inputs{Cluster: clusterOf(sr)}, machineconfig.DrainNowhereToGo},
		{"a worker with room elsewhere", running("1", "w1", "w2"), fit.Room},
		{"a worker when all are full", full, fit.NoNode},
		{"the control-plane node", asked(running("1", "w2"), func(in *machineconfig.Inputs) { in.Node = "m1" }), machineconfig.DrainControlPlane},
		{"the control-plane node of plain Kubernetes", asked(running("1", "w2"), func(in *machineconfig.Inputs) { in.Node, in.Nodes[0] = "m1", sized(node("m1", "control-plane"), "1") }), machineconfig.DrainControlPlane},
		{"a node with both roles", asked(running("1", "w2"), func(in *machineconfig.Inputs) {
			in.Node, in.Nodes[0] = "m1", sized(node("m1", "master", "worker"), "1")
		}), machineconfig.DrainControlPlane},
		{"a node that is gone", asked(running("1"), func(in *machineconfig.Inputs) { in.Node = "w9" }), fit.NotRead},
		{"nodes not read", asked(running("1"), func(in *machineconfig.Inputs) { in.Nodes = nil }), fit.NotRead},
		{"pods not read", asked(running("1"), func(in *machineconfig.Inputs) { in.Pods = nil }), fit.NotRead},
		{"another one leaves too", asked(running("2", "w1", "w2", "w3"), func(in *machineconfig.Inputs) { in.Leaving = []string{"w2"} }), fit.NoRoom},
		{"another one leaves too, with room for both", asked(running("2", "w1", "w2"), func(in *machineconfig.Inputs) { in.Leaving = []string{"w2", "w1"} }), fit.Room},
		{"the control-plane node restarts meanwhile", asked(running("1", "w1", "m1"), func(in *machineconfig.Inputs) { in.Leaving = []string{"m1", "gone"} }), fit.Room},
		{"the control-plane node restarts meanwhile, with a pod for which there is no room", asked(running("3", "w1", "m1", "w2"), func(in *machineconfig.Inputs) {
			in.Nodes[0], in.Leaving = sized(in.Nodes[0], "4"), []string{"m1"}
		}), fit.Room},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := machineconfig.DrainRequired(test.in)
			if got.Reason != test.want || got.Required != (test.want == fit.Room) || got.Message == "" || err != nil {
				t.Errorf("%+v, %v, want %s", got, err, test.want)
			}
		})
	}
}

// With every other topology every node is drained, whatever the policy and however full the others are.
func TestDrainRequiredElsewhere(t *testing.T) {
	for _, mode := range allModes {
		for _, policy := range append(machineconfig.DrainPolicies(), "") {
			for _, name := range []string{"m1", "w1", "gone"} {
				in := running("3", "w1", "w2", "w3")
				in.Cluster, in.Policy, in.Node = clusterOf(mode), policy, name
				got, err := machineconfig.DrainRequired(in)
				if err != nil {
					t.Fatal(err)
				}
				if got.Required != (mode != sr) || (got.Reason == machineconfig.DrainAsEver) != (mode != sr) {
					t.Errorf("%q, policy %q, node %s: %+v", mode, policy, name, got)
				}
			}
		}
	}
}
