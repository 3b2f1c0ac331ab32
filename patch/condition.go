// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"cmp"

	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
)

// InForceCondition is the type of the condition that is True while the patch is in force. No type ends in Degraded,
// Progressing, Available, Upgradeable or EvaluationConditionsDetected: library-go's status controller copies such
// conditions into the stock ClusterOperator, and keeps them after the controller is gone.
func InForceCondition(prefix string) string { return prefix + "PatchInForce" }

// InProgressCondition is the type of the condition that is True while the operand does not follow the patch yet.
func InProgressCondition(prefix string) string { return prefix + "PatchInProgress" }

// FailingCondition is the type of the condition that is True while a failure is persistent.
func FailingCondition(prefix string) string { return prefix + "PatchFailing" }

// Conditions returns <prefix>PatchFailing, <prefix>PatchInProgress and <prefix>PatchInForce without transition times.
func (r Result) Conditions(prefix string, persistent bool) []operatorv1.OperatorCondition {
	reason := cmp.Or(r.Reason, ReasonAsExpected)
	condition := func(kind string, is bool, otherwise string) operatorv1.OperatorCondition {
		if is {
			return operatorv1.OperatorCondition{Type: kind, Status: operatorv1.ConditionTrue, Reason: reason, Message: r.Message}
		}
		return operatorv1.OperatorCondition{Type: kind, Status: operatorv1.ConditionFalse, Reason: ReasonAsExpected, Message: otherwise}
	}
	inForce := operatorv1.OperatorCondition{Type: InForceCondition(prefix), Status: operatorv1.ConditionFalse, Reason: reason, Message: r.Message}
	if r.State == InForce || r.State == Progressing {
		inForce.Status = operatorv1.ConditionTrue
	}
	return []operatorv1.OperatorCondition{
		condition(FailingCondition(prefix), persistent && r.Failing(), "Nothing is failing"),
		condition(InProgressCondition(prefix), r.State == Progressing, "Nothing is in progress"),
		inForce,
	}
}

// Failing reports whether the state is a failure once it is persistent.
func (r Result) Failing() bool { return r.State == Failed || r.State == Reverted }

// Transition returns type and action of the event for a changed reason, empty for none, as for a first NotNeeded.
func (r Result) Transition(previousReason string) (eventType, action string) {
	if r.Reason == previousReason || previousReason == "" && (r.State == NotNeeded || r.State == OptedOut) {
		return "", ""
	}
	switch r.State {
	case InForce, Progressing, WouldChange:
		return corev1.EventTypeNormal, "Patch"
	case NotNeeded, OptedOut:
		return corev1.EventTypeNormal, "Release"
	case Waiting:
		return corev1.EventTypeNormal, "Wait"
	case Blocked, Reverted, Failed:
	}
	return corev1.EventTypeWarning, "Patch"
}
