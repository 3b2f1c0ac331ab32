package auth_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/auth"
)

func TestSchedulableControlPlaneNodes(t *testing.T) {
	tainted := func(key, value string, effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
		}
	}
	never := corev1.TaintEffectNoSchedule
	cordoned := func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		tainted("node.kubernetes.io/unschedulable", "", never)(n)
	}
	notReady := func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
		tainted("node.kubernetes.io/not-ready", "", never)(n)
		tainted("node.kubernetes.io/not-ready", "", corev1.TaintEffectNoExecute)(n)
	}
	gone := func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		tainted("node.kubernetes.io/unreachable", "", never)(n)
		tainted("node.kubernetes.io/unreachable", "", corev1.TaintEffectNoExecute)(n)
		tainted("node.kubernetes.io/out-of-service", "nodeshutdown", corev1.TaintEffectNoExecute)(n)
	}
	starved := func(n *corev1.Node) {
		for _, what := range []string{"memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable"} {
			tainted("node.kubernetes.io/"+what, "", never)(n)
		}
	}
	cloud := func(n *corev1.Node) {
		tainted("node.cloudprovider.kubernetes.io/uninitialized", "true", never)(n)
		tainted("node.cloudprovider.kubernetes.io/shutdown", "", never)(n)
	}
	worker := func(n *corev1.Node) { n.Labels = map[string]string{"node-role.kubernetes.io/worker": ""} }
	reserved := tainted("example.com/reserved", "db", never)
	ours := []corev1.Toleration{master, controlPlane}
	and := func(t corev1.Toleration) []corev1.Toleration { return append(ours[:2:2], t) }

	for name, test := range map[string]struct {
		nodes       []corev1.Node
		tolerations []corev1.Toleration
		want        int32
	}{
		"none":                     {nil, ours, 0},
		"one":                      {[]corev1.Node{controlPlaneNode()}, nil, 1},
		"day-1 workers, tainted":   {[]corev1.Node{controlPlaneNode(tainted("node-role.kubernetes.io/master", "", never)), controlPlaneNode(tainted("node-role.kubernetes.io/control-plane", "", never))}, ours, 2},
		"tainted, not tolerated":   {[]corev1.Node{controlPlaneNode(tainted("node-role.kubernetes.io/master", "", never))}, nil, 0},
		"a worker":                 {[]corev1.Node{controlPlaneNode(), controlPlaneNode(worker)}, ours, 1},
		"cordoned":                 {[]corev1.Node{controlPlaneNode(), controlPlaneNode(cordoned)}, ours, 2},
		"not ready":                {[]corev1.Node{controlPlaneNode(), controlPlaneNode(notReady)}, ours, 2},
		"rebooting":                {[]corev1.Node{controlPlaneNode(), controlPlaneNode(cordoned, notReady)}, ours, 2},
		"gone for a while":         {[]corev1.Node{controlPlaneNode(), controlPlaneNode(gone)}, ours, 2},
		"starved":                  {[]corev1.Node{controlPlaneNode(), controlPlaneNode(starved)}, ours, 2},
		"being made by a cloud":    {[]corev1.Node{controlPlaneNode(), controlPlaneNode(cloud)}, ours, 2},
		"preferably not":           {[]corev1.Node{controlPlaneNode(tainted("UpdateInProgress", "", corev1.TaintEffectPreferNoSchedule))}, ours, 1},
		"reserved":                 {[]corev1.Node{controlPlaneNode(), controlPlaneNode(reserved)}, ours, 1},
		"reserved, NoExecute":      {[]corev1.Node{controlPlaneNode(), controlPlaneNode(tainted("example.com/reserved", "", corev1.TaintEffectNoExecute))}, ours, 1},
		"reserved and cordoned":    {[]corev1.Node{controlPlaneNode(reserved, cordoned)}, ours, 0},
		"tolerated by key":         {[]corev1.Node{controlPlaneNode(reserved)}, and(corev1.Toleration{Key: "example.com/reserved", Operator: corev1.TolerationOpExists}), 1},
		"tolerated by value":       {[]corev1.Node{controlPlaneNode(reserved)}, and(corev1.Toleration{Key: "example.com/reserved", Value: "db", Effect: never}), 1},
		"tolerated, another value": {[]corev1.Node{controlPlaneNode(reserved)}, and(corev1.Toleration{Key: "example.com/reserved", Operator: corev1.TolerationOpEqual, Value: "web"}), 0},
		"tolerated, other effect":  {[]corev1.Node{controlPlaneNode(reserved)}, and(corev1.Toleration{Key: "example.com/reserved", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}), 0},
		"everything tolerated":     {[]corev1.Node{controlPlaneNode(reserved)}, and(corev1.Toleration{Operator: corev1.TolerationOpExists}), 1},
		"a newer operator":         {[]corev1.Node{controlPlaneNode(reserved)}, and(corev1.Toleration{Key: "example.com/reserved", Operator: "Gt", Value: "7"}), 0},
	} {
		if got := auth.SchedulableControlPlaneNodes(test.nodes, test.tolerations); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// The nodes are counted with the tolerations of each Deployment.
func TestReplicasByTolerations(t *testing.T) {
	in := deploymentInputs("HighlyAvailable", "HighlyAvailable", 3, server(), apiServer())
	in.ControlPlaneNodes[0].Spec.Taints = []corev1.Taint{{Key: "example.com/reserved", Effect: corev1.TaintEffectNoSchedule}}
	in.OAuthAPIServer.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "example.com/reserved", Operator: corev1.TolerationOpExists}}
	got := auth.Decide(in)
	if s, a := *got.OAuthServer.Intent.Spec.Replicas, *got.OAuthAPIServer.Intent.Spec.Replicas; s != 2 || a != 3 {
		t.Errorf("oauth-openshift %d, oauth-apiserver %d; want 2 and 3", s, a)
	}
}
