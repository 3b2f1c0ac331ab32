// SPDX-License-Identifier: Apache-2.0

package operator

import (
	operatorv1 "github.com/openshift/api/operator/v1"
	operatorv1ac "github.com/openshift/client-go/operator/applyconfigurations/operator/v1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/workload"
)

const (
	reasonRemoved  = "Removed"
	messageRemoved = "The Deployment is removed, as spec.managementState asks"
)

// condition returns a condition. The operator client sets its transition time.
func condition(prefix, suffix string, is bool, reason, message string) *operatorv1ac.OperatorConditionApplyConfiguration {
	status := operatorv1.ConditionFalse
	if is {
		status = operatorv1.ConditionTrue
	}
	return operatorv1ac.OperatorCondition().WithType(prefix + suffix).WithStatus(status).WithReason(reason).WithMessage(message)
}

// deploymentConditions returns <prefix>Available, Progressing and Degraded of a Deployment. It is available with one
// replica, also during a rollout, and not degraded by a rollout before its deadline.
func (o operand) deploymentConditions(live *appsv1.Deployment, remark string) []*operatorv1ac.OperatorConditionApplyConfiguration {
	health := workload.Health(live.Name+" Deployment", live)
	available := condition(o.conditions, operatorv1.OperatorStatusTypeAvailable, false, health.Reason, health.Message)
	if live.Status.AvailableReplicas > 0 {
		available = condition(o.conditions, operatorv1.OperatorStatusTypeAvailable, true, patch.ReasonAsExpected, "A replica is available"+remark)
	}
	progressing := condition(o.conditions, operatorv1.OperatorStatusTypeProgressing, false, patch.ReasonAsExpected, "Nothing is in progress")
	if health.State == patch.Progressing {
		progressing = condition(o.conditions, operatorv1.OperatorStatusTypeProgressing, true, health.Reason, health.Message)
	}
	degraded := condition(o.conditions, operatorv1.OperatorStatusTypeDegraded, false, patch.ReasonAsExpected, "Nothing is failing")
	if health.Failing() {
		degraded = condition(o.conditions, operatorv1.OperatorStatusTypeDegraded, true, health.Reason, health.Message)
	}
	return []*operatorv1ac.OperatorConditionApplyConfiguration{available, progressing, degraded}
}

func (o operand) removedConditions() []*operatorv1ac.OperatorConditionApplyConfiguration {
	return []*operatorv1ac.OperatorConditionApplyConfiguration{
		condition(o.conditions, operatorv1.OperatorStatusTypeAvailable, true, reasonRemoved, messageRemoved),
		condition(o.conditions, operatorv1.OperatorStatusTypeProgressing, false, reasonRemoved, messageRemoved),
		condition(o.conditions, operatorv1.OperatorStatusTypeDegraded, false, reasonRemoved, messageRemoved),
	}
}

// generation is what resourceapply compares next time to detect writes of other clients.
func generation(live *appsv1.Deployment) *operatorv1ac.GenerationStatusApplyConfiguration {
	return operatorv1ac.GenerationStatus().WithGroup(appsv1.GroupName).WithResource("deployments").
		WithNamespace(live.Namespace).WithName(live.Name).WithLastGeneration(live.Generation)
}
