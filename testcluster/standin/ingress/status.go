// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"slices"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/testcluster/standin"
	"github.com/solonode/sno/topology/workload"
)

// setStatus sets the status of an IngressController with this router, which may be nil. It keeps fields and conditions
// of others. The conditions are the stock operator's, without those about Service, DNS, and requests through the
// router, and without the time for which a router may be unavailable before it is degraded.
func setStatus(ic *operatorv1.IngressController, router *appsv1.Deployment) {
	status := &ic.Status
	if router == nil {
		router = &appsv1.Deployment{}
	}
	count := router.Status.AvailableReplicas
	status.ObservedGeneration, status.AvailableReplicas, status.Selector = ic.Generation, count, podLabel+"="+ic.Name

	available := slices.ContainsFunc(router.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
	})
	wanted := ptr.Deref(router.Spec.Replicas, 1)
	unavailable, _, _ := workload.Steps(router.Spec.Strategy, wanted)
	rolling := !workload.RolledOut(router)
	status.Conditions = standin.Merge(status.Conditions,
		state("Admitted", true, "Valid", ""),
		state("DeploymentAvailable", available, "DeploymentAvailable", "DeploymentUnavailable"),
		state("DeploymentReplicasMinAvailable", int(count) >= int(wanted)-unavailable, "DeploymentMinimumReplicasMet", "DeploymentMinimumReplicasNotMet"),
		state("DeploymentReplicasAllAvailable", count >= wanted, "DeploymentReplicasAvailable", "DeploymentReplicasNotAvailable"),
		state("DeploymentRollingOut", rolling, "DeploymentRollingOut", "DeploymentNotRollingOut"),
		state("LoadBalancerProgressing", false, "", "LoadBalancerNotProgressing"),
		state("EvaluationConditionsDetected", false, "", "NoEvaluationCondition"),
		state(operatorv1.OperatorStatusTypeAvailable, available, "", "IngressControllerUnavailable"),
		state(operatorv1.OperatorStatusTypeProgressing, rolling, "IngressControllerProgressing", ""),
		state(operatorv1.OperatorStatusTypeDegraded, !available, "DegradedConditions", ""),
		state(operatorv1.OperatorStatusTypeUpgradeable, true, "Upgradeable", ""),
	)
	if status.EndpointPublishingStrategy.Type != operatorv1.LoadBalancerServiceStrategyType {
		status.Conditions = standin.Merge(status.Conditions,
			state(operatorv1.LoadBalancerManagedIngressConditionType, false, "", "EndpointPublishingStrategyExcludesManagedLoadBalancer"))
	}
}

// state returns a condition with the reason for its status.
func state(kind string, is bool, reasonTrue, reasonFalse string) operatorv1.OperatorCondition {
	if is {
		return standin.Condition(kind, true, reasonTrue, "")
	}
	return standin.Condition(kind, false, reasonFalse, "")
}
