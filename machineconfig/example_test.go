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
		masters, arbiters, err := machineconfig.ExpectedControlPlaneNodes(read(mode))
		fmt.Println(mode, masters, arbiters, err)
	}
	// Output:
	// SingleReplica 1 0 <nil>
	// HighlyAvailableArbiter 2 1 <nil>
	// HighlyAvailable 3 0 <nil>
}

// read is the cluster as an operator reads it, from infrastructures.config.openshift.io/cluster.
func read(controlPlane configv1.TopologyMode) topology.Cluster {
	infrastructure := &configv1.Infrastructure{}
	infrastructure.Status.ControlPlaneTopology = controlPlane
	cluster, err := topology.FromInfrastructure(infrastructure)
	if err != nil {
		panic(err)
	}
	return cluster
}

// One node can always update, and three keep their quorum, whatever the pool says.
func ExampleMaxUnavailable() {
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: machineconfig.MasterPool}}
	pool.Spec.MaxUnavailable = ptr.To(intstr.FromString("67%"))
	for _, nodes := range []int{1, 3} {
		most, err := machineconfig.MaxUnavailable(pool, nodes)
		fmt.Println(nodes, most, err)
	}
	pool.Spec.MaxUnavailable = ptr.To(intstr.FromString("a few"))
	_, err := machineconfig.MaxUnavailable(pool, 1)
	fmt.Println(err)
	// Output:
	// 1 1 <nil>
	// 3 1 <nil>
	// unreadable maxUnavailable: MachineConfigPool master: spec.maxUnavailable is "a few", want a number or a percentage: invalid value for IntOrString: invalid type: string is not a percentage
}

// What the daemon of a node asks before it restarts.
func ExampleDrainRequired() {
	for _, mode := range []configv1.TopologyMode{configv1.SingleReplicaTopologyMode, configv1.DualReplicaTopologyMode} {
		cluster := read(mode)
		decision, err := machineconfig.DrainRequired(machineconfig.Inputs{Cluster: &cluster})
		fmt.Println(decision.Required, decision.Message, err)
	}
	// Without the cluster there is no answer.
	_, err := machineconfig.DrainRequired(machineconfig.Inputs{})
	fmt.Println(err)
	// Output:
	// false The control plane has one node, and nobody knows whether there is room for its pods elsewhere; nothing is drained <nil>
	// true The control plane does not stand on a single node, so nodes are drained before they restart <nil>
	// no topology: read the Cluster with topology.FromInfrastructure
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

// Two workers ask at once; their pool lets one of them go at a time. Nodes and pools are those of the operator's listers.
func ExampleMayStart() {
	worker := func(name string) *corev1.Node {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return node
	}
	start, held, err := machineconfig.MayStart(machineconfig.Turn{
		Cluster: read(configv1.SingleReplicaTopologyMode),
		Nodes:   []*corev1.Node{worker("worker-0"), worker("worker-1")},
		Asking:  []string{"worker-0", "worker-1"},
	})
	fmt.Println(start, held, err)
	// Output:
	// [worker-0] [{worker-1 As many nodes of its pool are away as may be}] <nil>
}
