// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	configv1ac "github.com/openshift/client-go/config/applyconfigurations/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/etcdguard/decision"
	"github.com/solonode/sno/topology"
)

// The first step on one node is to make the release's guard unmanaged.
func ExampleDecide() {
	single := topology.ReadingOf(configv1.SingleReplicaTopologyMode)
	cluster := topology.Cluster{ControlPlane: single, Infrastructure: single}
	decided := decision.Decide(decision.Inputs{
		Cluster:        &cluster,
		Members:        []etcdguard.Member{{ID: 1, Healthy: true}},
		ClusterVersion: &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}},
		Deployment:     staticGuard(), // as the cluster-version-operator created it
		Budget:         staticBudget(),
	})
	fmt.Println(actionOf(decided), decided.Result.Reason)
	for _, entry := range decided.ClusterVersion.Intent.(*configv1ac.ClusterVersionApplyConfiguration).Spec.Overrides {
		fmt.Println(*entry.Kind, *entry.Namespace, *entry.Name, *entry.Unmanaged)
	}
	// Output:
	// Claim TakingOver
	// Deployment openshift-etcd etcd-quorum-guard true
	// PodDisruptionBudget openshift-etcd etcd-quorum-guard true
}
