// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/workload"
	"github.com/solonode/sno/topology"
)

const (
	// wellKnownConditions and nodeConditions are prefixes of conditions.
	wellKnownConditions = "WellKnown"
	nodeConditions      = "ControlPlaneNodes"
	// overridesUpgradeable is the condition of library-go's operators for an override that blocks upgrades.
	overridesUpgradeable = "UnsupportedConfigOverridesUpgradeable"

	reasonWaitingForNodes = auth.ReasonWaitingForNodes
	reasonRollingOut      = patch.ReasonRollingOut
	reasonStuck           = patch.ReasonRolloutStuck
	reasonOverride        = "UnsupportedConfigOverrides"
	reasonUnreadable      = "UnreadableOverride"
)

func condition(kind string, is bool, reason, message string) operatorv1.OperatorCondition {
	status := operatorv1.ConditionFalse
	if is {
		status = operatorv1.ConditionTrue
	}
	return operatorv1.OperatorCondition{Type: kind, Status: status, Reason: reason, Message: message}
}

// deploymentConditions returns <prefix>Available, Progressing and Degraded of a Deployment, which may be nil. It is
// available with one replica, also during a rollout, and not degraded by a rollout before its deadline.
func deploymentConditions(prefix string, live *appsv1.Deployment, remark string) []operatorv1.OperatorCondition {
	available := condition(prefix+operatorv1.OperatorStatusTypeAvailable, false, "NoPods", "No pod is available; look at the pods and their events")
	progressing := condition(prefix+operatorv1.OperatorStatusTypeProgressing, true, reasonRollingOut, "The Deployment is rolling out")
	degraded := condition(prefix+operatorv1.OperatorStatusTypeDegraded, false, patch.ReasonAsExpected, "Nothing is failing")
	if live != nil && live.Status.AvailableReplicas > 0 {
		available = condition(available.Type, true, patch.ReasonAsExpected, "A pod is available"+remark)
	}
	switch {
	case live == nil:
	case workload.RolledOut(live):
		progressing = condition(progressing.Type, false, patch.ReasonAsExpected, "Nothing is in progress")
	case workload.RolloutStuck(live):
		const stuck = "The rollout does not finish; look at the pods and their events"
		progressing = condition(progressing.Type, false, reasonStuck, stuck)
		degraded = condition(degraded.Type, true, reasonStuck, stuck)
	}
	return []operatorv1.OperatorCondition{available, progressing, degraded}
}

// minimumConditions returns whether the operator waits for nodes, and the state of the override. An unreadable one has
// no effect, but is reported.
func minimumConditions(minimum auth.Minimum, nodes int32) []operatorv1.OperatorCondition {
	waiting := condition(nodeConditions+operatorv1.OperatorStatusTypeProgressing, false, patch.ReasonAsExpected, "Nothing is waited for")
	degraded := condition(nodeConditions+operatorv1.OperatorStatusTypeDegraded, false, patch.ReasonAsExpected, "Nothing is failing")
	upgradeable := condition(overridesUpgradeable, true, patch.ReasonAsExpected, "No deprecated override is set")
	if nodes < minimum.Nodes {
		waiting = condition(waiting.Type, true, reasonWaitingForNodes,
			fmt.Sprintf("%d of %d control-plane nodes are there; Deployments that do not exist yet are made when all are", nodes, minimum.Nodes))
	}
	if deprecation := minimum.Deprecation; deprecation != "" {
		upgradeable = condition(upgradeable.Type, false, reasonOverride, deprecation)
	}
	if err := minimum.Unreadable; err != nil {
		degraded = condition(degraded.Type, true, reasonUnreadable, err.Error())
		upgradeable = condition(upgradeable.Type, false, reasonUnreadable, err.Error())
	}
	return []operatorv1.OperatorCondition{waiting, degraded, upgradeable}
}

// merged replaces conditions of the same type. A time changes only with its status.
func merged(present []operatorv1.OperatorCondition, conditions []operatorv1.OperatorCondition, now metav1.Time) []operatorv1.OperatorCondition {
	result := slices.Clone(present)
	for _, c := range conditions {
		c.LastTransitionTime = now
		i := slices.IndexFunc(result, func(p operatorv1.OperatorCondition) bool { return p.Type == c.Type })
		if i < 0 {
			result = append(result, c)
			continue
		}
		if result[i].Status == c.Status {
			c.LastTransitionTime = result[i].LastTransitionTime
		}
		result[i] = c
	}
	return result
}

// publishedState derives the state of the last requests to the API servers from the conditions, for a new process.
// Times are those of the conditions' transitions, less their delay. A partial failure that was not degraded yet begins
// with the next requests.
func publishedState(published []operatorv1.OperatorCondition, mode configv1.TopologyMode) auth.WellKnownState {
	find := func(suffix string) (operatorv1.OperatorCondition, bool) {
		i := slices.IndexFunc(published, func(c operatorv1.OperatorCondition) bool { return c.Type == wellKnownConditions+suffix })
		if i < 0 {
			return operatorv1.OperatorCondition{}, false
		}
		return published[i], published[i].Status == operatorv1.ConditionTrue
	}
	available, isAvailable := find(operatorv1.OperatorStatusTypeAvailable)
	progressing, isProgressing := find(operatorv1.OperatorStatusTypeProgressing)
	degraded, isDegraded := find(operatorv1.OperatorStatusTypeDegraded)
	state := auth.WellKnownState{Available: isAvailable}
	earlier := func(times []*time.Time, t time.Time) {
		for _, known := range times {
			if known.IsZero() || t.Before(*known) {
				*known = t
			}
		}
	}
	both := []*time.Time{&state.FailingSince, &state.SilentSince}
	switch {
	case isProgressing:
		earlier(both, progressing.LastTransitionTime.Time)
	case available.Status == operatorv1.ConditionFalse && topology.SingleReplica(mode):
		earlier(both, available.LastTransitionTime.Add(-auth.RolloutGrace))
	case available.Status == operatorv1.ConditionFalse:
		earlier(both, available.LastTransitionTime.Time)
	}
	if isDegraded && isAvailable {
		earlier(both[:1], degraded.LastTransitionTime.Add(-auth.DegradedAfter))
	} else if isDegraded && topology.SingleReplica(mode) { // elsewhere a failure of all is degraded at once
		earlier(both, degraded.LastTransitionTime.Add(-auth.DegradedAfter))
	}
	return state
}
