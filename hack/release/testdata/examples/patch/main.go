// SPDX-License-Identifier: Apache-2.0

// Command patch shapes a Deployment with the parts that all modules share.
package main

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/workload"
	"github.com/solonode/sno/topology"
)

func main() {
	live := &appsv1.Deployment{}
	shaped := live.DeepCopy()
	shaped.Spec.Strategy = workload.RollingUpdate(topology.RolloutStrategy(configv1.SingleReplicaTopologyMode, true))
	workload.Place(&shaped.Spec.Template.Spec, topology.ControlPlanePool)
	workload.UnblockRollout(shaped, live)
	fmt.Println(shaped.Spec.Strategy.RollingUpdate, shaped.Spec.Template.Spec.NodeSelector)
	fmt.Println(workload.DisruptionBudget("ns", "budget", configv1.SingleReplicaTopologyMode, map[string]string{"app": "a"}))
	fmt.Println(patch.OptsOut(map[string]string{patch.OptOutAnnotation: "ingress"}, "ingress"))
}
