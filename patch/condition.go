package patch

import (
	operatorv1 "github.com/openshift/api/operator/v1"
)

// Suffixes of the sub-conditions. None ends in Degraded, Progressing, Available, Upgradeable or EvaluationConditionsDetected: library-go's status
// controller takes every such condition of an operator's resource up into the stock ClusterOperator, and keeps it there when our controller is gone.
const (
	failingSuffix    = "PatchFailing"
	inProgressSuffix = "PatchInProgress"
	inForceSuffix    = "PatchInForce"
)

// InForceCondition is the type of the sub-condition that says how the patch stands, for a module's prefix.
func InForceCondition(prefix string) string { return prefix + inForceSuffix }

// FailingCondition is the type of the sub-condition that says whether something fails for long, for a module's prefix.
func FailingCondition(prefix string) string { return prefix + failingSuffix }

// Conditions are the sub-conditions that a result shows on the operator's own resource: <prefix>PatchFailing,
// <prefix>PatchInProgress and <prefix>PatchInForce, without transition times, which belong to whoever writes them.
//
// PatchFailing is True only for Failed and Reverted, and only once they are persistent (the writer knows for how long), as the
// ClusterOperator conventions ask of Degraded. A field that a person owns is their decision and no failure.
func (r Result) Conditions(prefix string, persistent bool) []operatorv1.OperatorCondition {
	reason, message := r.Reason, r.Message
	if reason == "" {
		reason = ReasonAsExpected
	}
	condition := func(kind string, is bool, otherwise string) operatorv1.OperatorCondition {
		c := operatorv1.OperatorCondition{Type: kind, Status: operatorv1.ConditionFalse, Reason: ReasonAsExpected, Message: otherwise}
		if is {
			c.Status, c.Reason, c.Message = operatorv1.ConditionTrue, reason, message
		}
		return c
	}
	inForce := operatorv1.OperatorCondition{Type: InForceCondition(prefix), Status: operatorv1.ConditionFalse, Reason: reason, Message: message}
	if r.State == InForce || r.State == Progressing {
		inForce.Status = operatorv1.ConditionTrue
	}
	return []operatorv1.OperatorCondition{
		condition(FailingCondition(prefix), persistent && r.Failing(), "Nothing is failing"),
		condition(prefix+inProgressSuffix, r.State == Progressing, "Nothing is in progress"),
		inForce,
	}
}

// Failing reports whether the state is a failure once it is persistent.
func (r Result) Failing() bool { return r.State == Failed || r.State == Reverted }
