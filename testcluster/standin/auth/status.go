// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"fmt"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/standin"
)

// wellKnownConditions is the prefix of the conditions of the well-known endpoint.
const wellKnownConditions = "WellKnown"

// minimumConditions returns whether the operator waits for nodes, and the state of the override. An unreadable one has
// no effect, but is reported.
func minimumConditions(minimum auth.Minimum, nodes int32) []operatorv1.OperatorCondition {
	waiting := standin.Condition("ControlPlaneNodesProgressing", false, patch.ReasonAsExpected, "Nothing is waited for")
	degraded := standin.Condition("ControlPlaneNodesDegraded", false, patch.ReasonAsExpected, "Nothing is failing")
	if nodes < minimum.Nodes {
		waiting = standin.Condition(waiting.Type, true, "WaitingForNodes",
			fmt.Sprintf("%d of %d control-plane nodes are there; Deployments that do not exist yet are made when all are", nodes, minimum.Nodes))
	}
	if err := minimum.Unreadable; err != nil {
		degraded = standin.Condition(degraded.Type, true, standin.ReasonUnreadableOverride, err.Error())
	}
	return []operatorv1.OperatorCondition{waiting, degraded, standin.OverrideCondition(minimum.Deprecation, minimum.Unreadable)}
}

// publishedState derives the state of the last requests to the API servers from the conditions, for a new process. A
// partial failure begins with the next requests.
func publishedState(published []operatorv1.OperatorCondition) auth.WellKnownState {
	available := standin.Find(published, wellKnownConditions+operatorv1.OperatorStatusTypeAvailable)
	progressing := standin.Find(published, wellKnownConditions+operatorv1.OperatorStatusTypeProgressing)
	var since time.Time
	switch {
	case progressing.Status == operatorv1.ConditionTrue:
		since = progressing.LastTransitionTime.Time
	case available.Status == operatorv1.ConditionFalse:
		since = available.LastTransitionTime.Add(-auth.RolloutGrace)
	}
	return auth.WellKnownState{Available: available.Status == operatorv1.ConditionTrue, FailingSince: since, SilentSince: since}
}
