// SPDX-License-Identifier: Apache-2.0

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
	"github.com/solonode/sno/machineconfig/internal/fixture"
)

func ExampleDrainRequired() {
	for _, mode := range []configv1.TopologyMode{configv1.SingleReplicaTopologyMode, configv1.DualReplicaTopologyMode} {
		decided, err := machineconfig.DrainRequired(machineconfig.Inputs{Cluster: fixture.ClusterOf(mode)})
		fmt.Println(decided.Required, decided.Message, err)
	}
	_, err := machineconfig.DrainRequired(machineconfig.Inputs{})
	fmt.Println(err)
	// Output:
	// false The control plane is SingleReplica, and other nodes may have no room for the pods, so nothing is drained <nil>
	// true The control plane is not SingleReplica, so nodes are drained before they restart <nil>
	// no topology: read the Cluster with topology.FromInfrastructure
}

func ExampleExpectedControlPlaneNodes() {
	for _, mode := range []configv1.TopologyMode{configv1.SingleReplicaTopologyMode, configv1.HighlyAvailableArbiterMode, configv1.HighlyAvailableTopologyMode} {
		masters, arbiters, err := machineconfig.ExpectedControlPlaneNodes(*fixture.ClusterOf(mode))
		fmt.Println(mode, masters, arbiters, err)
	}
	// Output:
	// SingleReplica 1 0 <nil>
	// HighlyAvailableArbiter 2 1 <nil>
	// HighlyAvailable 3 0 <nil>
}

// One node can update, and three keep their quorum.
func ExampleMaxUnavailable() {
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: machineconfig.MasterPool}}
	pool.Spec.MaxUnavailable = ptr.To(intstr.FromString("67%"))
	for _, nodes := range []int{1, 3} {
		n, err := machineconfig.MaxUnavailable(pool, nodes)
		fmt.Println(nodes, n, err)
	}
	pool.Spec.MaxUnavailable = ptr.To(intstr.FromString("a few"))
	_, err := machineconfig.MaxUnavailable(pool, 1)
	fmt.Println(err)
	// Output:
	// 1 1 <nil>
	// 3 1 <nil>
	// unreadable maxUnavailable: MachineConfigPool master: spec.maxUnavailable is "a few", want a number or a percentage: invalid value for IntOrString: invalid type: string is not a percentage
}

// Two workers request a drain; their pool permits one at a time.
func ExampleMayStart() {
	worker := func(name string) *corev1.Node {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return node
	}
	start, waiting, err := machineconfig.MayStart(machineconfig.DrainState{
		Cluster: *fixture.ClusterOf(configv1.SingleReplicaTopologyMode),
		Nodes:   []*corev1.Node{worker("worker-0"), worker("worker-1")},
		Pending: []string{"worker-0", "worker-1"},
	})
	fmt.Println(start, waiting["worker-1"].Reason, err)
	// Output:
	// [worker-0] Draining <nil>
}

// A router has an hour, a database 90 s. The bound limits both.
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
