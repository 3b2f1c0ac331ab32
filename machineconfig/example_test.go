package machineconfig_test

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/topology"
)

// A machine-config operator waits for as many nodes as the topology expects.
func ExampleExpectedControlPlaneNodes() {
	for _, mode := range []configv1.TopologyMode{configv1.SingleReplicaTopologyMode, configv1.HighlyAvailableArbiterMode, configv1.HighlyAvailableTopologyMode} {
		masters, arbiters := machineconfig.ExpectedControlPlaneNodes(mode)
		fmt.Println(mode, masters, arbiters)
	}
	// Output:
	// SingleReplica 1 0
	// HighlyAvailableArbiter 2 1
	// HighlyAvailable 3 0
}

// One node can always update, and three keep their quorum, whatever the pool says.
func ExampleMaxUnavailable() {
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: machineconfig.MasterPool}}
	pool.Spec.MaxUnavailable = ptr.To(intstr.FromString("67%"))
	for _, nodes := range []int{1, 3} {
		most, err := machineconfig.MaxUnavailable(pool, make([]corev1.Node, nodes)...)
		fmt.Println(nodes, most, err)
	}
	pool.Spec.MaxUnavailable = ptr.To(intstr.FromString("a few"))
	_, err := machineconfig.MaxUnavailable(pool, corev1.Node{})
	fmt.Println(err)
	// Output:
	// 1 1 <nil>
	// 3 1 <nil>
	// unreadable maxUnavailable: MachineConfigPool master: spec.maxUnavailable is "a few", want a number or a percentage: invalid value for IntOrString: invalid type: string is not a percentage
}

// What the daemon of a node asks before it restarts.
func ExampleDrainRequired() {
	for _, mode := range []configv1.TopologyMode{configv1.SingleReplicaTopologyMode, configv1.DualReplicaTopologyMode} {
		decision := machineconfig.DrainRequired(machineconfig.Inputs{Cluster: &topology.Cluster{ControlPlane: topology.ReadingOf(mode)}})
		fmt.Println(decision.Required, decision.Message)
	}
	// Output:
	// false The control plane has one node, and nobody knows whether there is room for its pods elsewhere; nothing is drained
	// true The control plane does not stand on a single node, so nodes are drained before they restart
}

// A router asks for an hour to end, a database for a minute and a half. The bound limits what is waited for.
func ExampleShutdownGracePeriods() {
	router, database := corev1.Pod{}, corev1.Pod{}
	router.Spec.Priority, router.Spec.TerminationGracePeriodSeconds = ptr.To[int32](2_000_000_000), ptr.To[int64](3600)
	database.Spec.TerminationGracePeriodSeconds = ptr.To[int64](90)
	periods := machineconfig.ShutdownGracePeriods([]corev1.Pod{router, database}, machineconfig.DefaultShutdownBound)
	fmt.Println("shutdownGracePeriod:", periods.Total)
	fmt.Println("shutdownGracePeriodCriticalPods:", periods.Critical)
	// Output:
	// shutdownGracePeriod: 3m0s
	// shutdownGracePeriodCriticalPods: 1m30s
}

// Two workers ask at once; their pool lets one of them go at a time.
func ExampleMayStart() {
	worker := func(name string) corev1.Node {
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return node
	}
	start, held, err := machineconfig.MayStart(machineconfig.Turn{
		Cluster: topology.Cluster{ControlPlane: topology.ReadingOf(configv1.SingleReplicaTopologyMode)},
		Nodes:   []corev1.Node{worker("worker-0"), worker("worker-1")},
		Asking:  []string{"worker-0", "worker-1"},
	})
	fmt.Println(start, held, err)
	// Output:
	// [worker-0] [{worker-1 As many nodes of its pool are away as may be}] <nil>
}
