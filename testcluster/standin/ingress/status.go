// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"fmt"
	"slices"
	"strings"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/testcluster/standin"
)

// Conditions of the stock operator without a constant in the API.
const (
	conditionAdmitted     = "Admitted"
	conditionAvailable    = "DeploymentAvailable"
	conditionMinAvailable = "DeploymentReplicasMinAvailable"
	conditionAllAvailable = "DeploymentReplicasAllAvailable"
	conditionRollingOut   = "DeploymentRollingOut"
	conditionLoadBalancer = "LoadBalancerProgressing"
	conditionEvaluation   = "EvaluationConditionsDetected"

	// Reasons that are not a rollout of the operator: pods of a restarted node, and a number of pods that settles.
	reasonPodsStarting = "PodsStarting"
	reasonStabilizing  = "ReplicasStabilizing"
)

// expectations are the conditions without which the router is degraded, and how long they may differ.
var expectations = []struct {
	condition string
	grace     time.Duration
}{
	{conditionAdmitted, 0},
	{conditionAvailable, 30 * time.Second},
	{conditionMinAvailable, time.Minute},
	{conditionAllAvailable, time.Hour},
}

// recheck is the stock operator's interval for a degraded router.
const recheck = time.Minute

// setStatus sets the status of an IngressController with this router, which may be nil. It keeps fields and conditions
// of others. after is when time alone changes it; 0 for never. The conditions are the stock operator's, without those
// about Service, DNS, and requests through the router.
func setStatus(ic *operatorv1.IngressController, router *appsv1.Deployment, now time.Time) (after time.Duration) {
	status := &ic.Status
	if router == nil {
		router = &appsv1.Deployment{}
	}
	status.ObservedGeneration, status.AvailableReplicas = ic.Generation, router.Status.AvailableReplicas
	status.Selector = podLabel + "=" + ic.Name
	conditions := standin.Merge(status.Conditions, append(deploymentConditions(router),
		standin.Condition(conditionAdmitted, true, "Valid", ""),
		standin.Condition(conditionLoadBalancer, false, "LoadBalancerNotProgressing", "LoadBalancer is not progressing"),
		standin.Condition(operatorv1.OperatorStatusTypeUpgradeable, true, "Upgradeable", "IngressController is upgradeable."),
		standin.Condition(conditionEvaluation, false, "NoEvaluationCondition", "No evaluation condition is detected."),
	)...)
	if status.EndpointPublishingStrategy.Type != operatorv1.LoadBalancerServiceStrategyType {
		conditions = standin.Merge(conditions, standin.Condition(operatorv1.LoadBalancerManagedIngressConditionType, false,
			"EndpointPublishingStrategyExcludesManagedLoadBalancer", "The configured endpoint publishing strategy does not include a managed load balancer"))
	}
	degraded, after := degradedCondition(conditions, now)
	status.Conditions = standin.Merge(conditions, availableCondition(conditions), progressingCondition(conditions), degraded)
	return after
}

// deploymentConditions returns those that follow from the Deployment alone.
func deploymentConditions(router *appsv1.Deployment) []operatorv1.OperatorCondition {
	replicas, status := ptr.Deref(router.Spec.Replicas, 1), router.Status
	available := operatorv1.OperatorCondition{
		Type: conditionAvailable, Status: operatorv1.ConditionUnknown, Reason: "DeploymentAvailabilityUnknown",
		Message: "The deployment has no Available status condition set",
	}
	for _, c := range status.Conditions {
		switch {
		case c.Type != appsv1.DeploymentAvailable:
		case c.Status == corev1.ConditionTrue:
			available = standin.Condition(conditionAvailable, true, "DeploymentAvailable", "The deployment has Available status condition set to True")
		case c.Status == corev1.ConditionFalse:
			available = standin.Condition(conditionAvailable, false, "DeploymentUnavailable", fmt.Sprintf(
				"The deployment has Available status condition set to False (reason: %s) with message: %s", c.Reason, c.Message))
		}
	}
	least := standin.Condition(conditionMinAvailable, true, "DeploymentMinimumReplicasMet", "Minimum replicas requirement is met")
	if unavailable := maxUnavailable(router, replicas); status.AvailableReplicas < replicas-unavailable {
		least = standin.Condition(conditionMinAvailable, false, "DeploymentMinimumReplicasNotMet",
			fmt.Sprintf("%d/%d of replicas are available, max unavailable is %d", status.AvailableReplicas, replicas, unavailable))
	}
	all := standin.Condition(conditionAllAvailable, true, "DeploymentReplicasAvailable", "All replicas are available")
	if status.AvailableReplicas < replicas {
		all = standin.Condition(conditionAllAvailable, false, "DeploymentReplicasNotAvailable", fmt.Sprintf("%d/%d of replicas are available", status.AvailableReplicas, replicas))
	}
	return []operatorv1.OperatorCondition{available, least, all, rollingOut(router, replicas)}
}

// maxUnavailable returns maxUnavailable as a number. An invalid value is 0.
func maxUnavailable(router *appsv1.Deployment, replicas int32) int32 {
	surge, unavailable := intstr.FromString("25%"), intstr.FromString("25%")
	if rolling := router.Spec.Strategy.RollingUpdate; rolling != nil {
		surge, unavailable = ptr.Deref(rolling.MaxSurge, surge), ptr.Deref(rolling.MaxUnavailable, unavailable)
	}
	more, err := intstr.GetScaledValueFromIntOrPercent(&surge, int(replicas), true)
	if err != nil {
		return 0
	}
	less, err := intstr.GetScaledValueFromIntOrPercent(&unavailable, int(replicas), false)
	if err != nil {
		return 0
	}
	if more == 0 && less == 0 {
		less = 1
	}
	return int32(less) //nolint:gosec // not more than the replicas, or a small number
}

func rollingOut(router *appsv1.Deployment, replicas int32) operatorv1.OperatorCondition {
	var waiting string
	switch status := router.Status; {
	case status.UpdatedReplicas < replicas:
		waiting = fmt.Sprintf("%d out of %d new replica(s) have been updated...\n", status.UpdatedReplicas, replicas)
	case status.Replicas > status.UpdatedReplicas:
		waiting = fmt.Sprintf("%d old replica(s) are pending termination...\n", status.Replicas-status.UpdatedReplicas)
	case status.AvailableReplicas < status.UpdatedReplicas:
		waiting = fmt.Sprintf("%d of %d updated replica(s) are available...\n", status.AvailableReplicas, status.UpdatedReplicas)
	default:
		return standin.Condition(conditionRollingOut, false, "DeploymentNotRollingOut", "Deployment is not actively rolling out")
	}
	return standin.Condition(conditionRollingOut, true, rollingOutReason(router, replicas), "Waiting for router deployment rollout to finish: "+waiting)
}

func rollingOutReason(router *appsv1.Deployment, replicas int32) string {
	status := router.Status
	complete := slices.ContainsFunc(status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionTrue && c.Reason == "NewReplicaSetAvailable"
	})
	switch {
	case !complete || router.Generation != status.ObservedGeneration || status.UpdatedReplicas != replicas:
		return "DeploymentRollingOut"
	case status.Replicas != replicas:
		return reasonStabilizing
	case status.AvailableReplicas < replicas:
		return reasonPodsStarting
	}
	return "DeploymentRollingOut"
}

func find(conditions []operatorv1.OperatorCondition, kind string) operatorv1.OperatorCondition {
	if i := slices.IndexFunc(conditions, func(c operatorv1.OperatorCondition) bool { return c.Type == kind }); i >= 0 {
		return conditions[i]
	}
	return operatorv1.OperatorCondition{Type: kind}
}

func describe(c operatorv1.OperatorCondition) string {
	return fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message)
}

func availableCondition(conditions []operatorv1.OperatorCondition) operatorv1.OperatorCondition {
	if deployment := find(conditions, conditionAvailable); deployment.Status != operatorv1.ConditionTrue {
		return standin.Condition(operatorv1.OperatorStatusTypeAvailable, false, "IngressControllerUnavailable",
			"One or more status conditions indicate unavailable: "+describe(deployment))
	}
	return standin.Condition(operatorv1.OperatorStatusTypeAvailable, true, "", "")
}

func progressingCondition(conditions []operatorv1.OperatorCondition) operatorv1.OperatorCondition {
	rolling := find(conditions, conditionRollingOut)
	if rolling.Status == operatorv1.ConditionTrue && rolling.Reason != reasonPodsStarting && rolling.Reason != reasonStabilizing {
		return standin.Condition(operatorv1.OperatorStatusTypeProgressing, true, "IngressControllerProgressing",
			"One or more status conditions indicate progressing: "+describe(rolling))
	}
	return standin.Condition(operatorv1.OperatorStatusTypeProgressing, false, "", "")
}

func degradedCondition(conditions []operatorv1.OperatorCondition, now time.Time) (degraded operatorv1.OperatorCondition, after time.Duration) {
	var failing []string
	for _, expected := range expectations {
		c := find(conditions, expected.condition)
		if c.Status == operatorv1.ConditionTrue {
			continue
		}
		if left := c.LastTransitionTime.Add(expected.grace).Sub(now); left > 0 {
			if after == 0 || left < after {
				after = left
			}
			continue
		}
		failing = append(failing, describe(c))
	}
	if len(failing) == 0 {
		return standin.Condition(operatorv1.OperatorStatusTypeDegraded, false, "", ""), after
	}
	return standin.Condition(operatorv1.OperatorStatusTypeDegraded, true, "DegradedConditions",
		"One or more other status conditions indicate a degraded state: "+strings.Join(failing, ", ")), recheck
}
