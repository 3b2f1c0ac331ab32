// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/patch"
)

const (
	poolConditionPrefix     = "NodeController"
	drainConditionPrefix    = "DrainController"
	shutdownConditionPrefix = "KubeletShutdown"

	reasonError = "Error"
	// drainInterval is the time between two steps of a drain.
	drainInterval = 500 * time.Millisecond
)

func condition(kind string, is bool, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// conditionsOf returns <prefix>Progressing and <prefix>Degraded.
func conditionsOf(prefix string, progressing bool, reason, message string, err error) []metav1.Condition {
	degraded := condition(prefix+operatorv1.OperatorStatusTypeDegraded, false, patch.ReasonAsExpected, "Nothing is failing")
	if err != nil {
		degraded = condition(degraded.Type, true, reasonError, err.Error())
	}
	return []metav1.Condition{condition(prefix+operatorv1.OperatorStatusTypeProgressing, progressing, reason, message), degraded}
}

// poolConditions returns whether nodes take configurations. Changes in paused pools are reported, but nothing
// progresses.
func poolConditions(s state, turns int, err error) []metav1.Condition {
	held, pendingErr := machineconfig.PendingChanges(s.pools, s.nodePointers())
	updating := 0
	for i := range s.nodes {
		if (poolNode{node: &s.nodes[i]}).updating() {
			updating++
		}
	}
	err = errors.Join(err, pendingErr)
	switch {
	case turns > 0 || updating > 0:
		return conditionsOf(poolConditionPrefix, true, patch.ReasonRollingOut, "Nodes take the configurations of their pools", err)
	case len(held) > 0:
		return conditionsOf(poolConditionPrefix, false, machineconfig.ReasonUpdatesPaused, "Paused pools hold back changes: "+strings.Join(held, "; "), err)
	}
	return conditionsOf(poolConditionPrefix, false, patch.ReasonAsExpected, "Nodes have the configurations of their pools", err)
}

// progress is the state of the requests.
type progress struct {
	draining []string
	waiting  map[string]string
	failed   map[string]error
	problem  error
}

func (p *progress) fail(node string, err error) {
	if err != nil {
		p.failed[node] = err
	}
}

func (p *progress) err() error {
	errs := []error{p.problem}
	for _, node := range slices.Sorted(maps.Keys(p.failed)) {
		errs = append(errs, fmt.Errorf("node %s: %w", node, p.failed[node]))
	}
	return errors.Join(errs...)
}

// next returns when the next step is due; 0 if an event triggers it.
func (p *progress) next() time.Duration {
	switch {
	case len(p.draining) > 0 || len(p.failed) > 0:
		return drainInterval
	case len(p.waiting) > 0:
		return machineconfig.RecheckInterval
	}
	return 0
}

func (p *progress) conditions() []metav1.Condition {
	switch {
	case len(p.draining) > 0:
		return conditionsOf(drainConditionPrefix, true, machineconfig.ReasonDraining, "Draining "+strings.Join(p.draining, ", "), p.err())
	case len(p.waiting) > 0:
		first := slices.Min(slices.Collect(maps.Keys(p.waiting)))
		return conditionsOf(drainConditionPrefix, true, machineconfig.ReasonDraining, "Node "+first+": "+p.waiting[first], p.err())
	}
	return conditionsOf(drainConditionPrefix, false, patch.ReasonAsExpected, "No node is drained", p.err())
}

func shutdownConditions(want machineconfig.GracePeriods, left time.Duration) []metav1.Condition {
	kind := shutdownConditionPrefix + operatorv1.OperatorStatusTypeProgressing
	switch {
	case left > 0:
		return []metav1.Condition{condition(kind, true, decision.ReasonSettling, "A change of the grace periods restarts the node, so it is written when it is stable")}
	case want.Total == 0:
		return []metav1.Condition{condition(kind, false, patch.ReasonNotNeeded, "Kubelets have no grace periods: nodes are drained, or others would send requests to them")}
	}
	return []metav1.Condition{condition(kind, false, patch.ReasonAsExpected, fmt.Sprintf("The kubelet has %s to end pods, %s of it for critical ones", want.Total, want.Critical))}
}
