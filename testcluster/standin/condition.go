// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"slices"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology/workload"
)

// ReasonUnreadableOverride is for an override that has no effect because it cannot be read.
const ReasonUnreadableOverride = "UnreadableOverride"

// Condition returns a condition without a time.
func Condition(kind string, is bool, reason, message string) operatorv1.OperatorCondition {
	status := operatorv1.ConditionFalse
	if is {
		status = operatorv1.ConditionTrue
	}
	return operatorv1.OperatorCondition{Type: kind, Status: status, Reason: reason, Message: message}
}

// Merge replaces conditions of the same types. A time changes only with its status.
func Merge(present []operatorv1.OperatorCondition, conditions ...operatorv1.OperatorCondition) []operatorv1.OperatorCondition {
	merged, now := slices.Clone(present), metav1.Now()
	for _, c := range conditions {
		c.LastTransitionTime = now
		i := slices.IndexFunc(merged, func(p operatorv1.OperatorCondition) bool { return p.Type == c.Type })
		if i < 0 {
			merged = append(merged, c)
			continue
		}
		if merged[i].Status == c.Status {
			c.LastTransitionTime = merged[i].LastTransitionTime
		}
		merged[i] = c
	}
	return merged
}

// Find returns the condition of a type, without a status if there is none.
func Find(conditions []operatorv1.OperatorCondition, kind string) operatorv1.OperatorCondition {
	if i := slices.IndexFunc(conditions, func(c operatorv1.OperatorCondition) bool { return c.Type == kind }); i >= 0 {
		return conditions[i]
	}
	return operatorv1.OperatorCondition{Type: kind}
}

// OverrideCondition returns the condition of library-go's operators for an override that blocks upgrades: one that is
// deprecated, or cannot be read.
func OverrideCondition(deprecation string, unreadable error) operatorv1.OperatorCondition {
	const kind = "UnsupportedConfigOverridesUpgradeable"
	switch {
	case unreadable != nil:
		return Condition(kind, false, ReasonUnreadableOverride, unreadable.Error())
	case deprecation != "":
		return Condition(kind, false, "UnsupportedConfigOverrides", deprecation)
	}
	return Condition(kind, true, patch.ReasonAsExpected, "No deprecated override is set")
}

// DeploymentConditions returns PREFIXAvailable, Progressing and Degraded of a Deployment, which may be nil. It is
// available with one replica, also during a rollout, and not degraded by a rollout before its deadline.
func DeploymentConditions(prefix string, live *appsv1.Deployment, remark string) []operatorv1.OperatorCondition {
	available := Condition(prefix+operatorv1.OperatorStatusTypeAvailable, false, "NoPods", "No pod is available; look at the pods and their events")
	progressing := Condition(prefix+operatorv1.OperatorStatusTypeProgressing, true, patch.ReasonRollingOut, "The Deployment is rolling out")
	degraded := Condition(prefix+operatorv1.OperatorStatusTypeDegraded, false, patch.ReasonAsExpected, "Nothing is failing")
	if live != nil && live.Status.AvailableReplicas > 0 {
		available = Condition(available.Type, true, patch.ReasonAsExpected, "A pod is available"+remark)
	}
	switch {
	case live == nil:
	case workload.RolledOut(live):
		progressing = Condition(progressing.Type, false, patch.ReasonAsExpected, "Nothing is in progress")
	case workload.RolloutStuck(live):
		const stuck = "The rollout does not finish; look at the pods and their events"
		progressing = Condition(progressing.Type, false, patch.ReasonRolloutStuck, stuck)
		degraded = Condition(degraded.Type, true, patch.ReasonRolloutStuck, stuck)
	}
	return []operatorv1.OperatorCondition{available, progressing, degraded}
}
