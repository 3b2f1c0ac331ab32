package patch

import (
	operatorv1 "github.com/openshift/api/operator/v1"
)

// Suffixes of the sub-conditions. The first two are the suffixes that library-go's status controllers look for, so a host's
// ClusterOperator picks them up; the third must not end in one of those words, because it only informs.
const (
	degradedSuffix    = "Degraded"
	progressingSuffix = "Progressing"
	inForceSuffix     = "PatchInForce"
)

// InForceCondition is the type of the sub-condition that says how the patch stands, for a module's prefix.
func InForceCondition(prefix string) string { return prefix + inForceSuffix }

// Conditions are the sub-conditions that a result shows on the operator's own resource: <prefix>Degraded,
// <prefix>Progressing and <prefix>PatchInForce, without transition times, which belong to whoever writes them.
//
// Degraded is True only for Failed and Reverted, and only once they are persistent (the writer knows for how long), as the
// ClusterOperator conventions ask. A field that a person owns is their decision and degrades nothing.
func (r Result) Conditions(prefix string, persistent bool) []operatorv1.OperatorCondition {
	reason, message := r.Reason, r.Message
	if reason == "" {
		reason = ReasonAsExpected
	}
	condition := func(suffix string, is bool, otherwise string) operatorv1.OperatorCondition {
		c := operatorv1.OperatorCondition{Type: prefix + suffix, Status: operatorv1.ConditionFalse, Reason: ReasonAsExpected, Message: otherwise}
		if is {
			c.Status, c.Reason, c.Message = operatorv1.ConditionTrue, reason, message
		}
		return c
	}
	inForce := operatorv1.OperatorCondition{Type: prefix + inForceSuffix, Status: operatorv1.ConditionFalse, Reason: reason, Message: message}
	if r.State == InForce || r.State == Progressing {
		inForce.Status = operatorv1.ConditionTrue
	}
	return []operatorv1.OperatorCondition{
		condition(degradedSuffix, persistent && r.Failing(), "Nothing is failing"),
		condition(progressingSuffix, r.State == Progressing, "Nothing is in progress"),
		inForce,
	}
}

// Failing reports whether the state is one that degrades once it is persistent.
func (r Result) Failing() bool { return r.State == Failed || r.State == Reverted }
