// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
)

// drainInterval is the time between two steps of a drain.
const drainInterval = 500 * time.Millisecond

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
	progressing := metav1.Condition{Type: "DrainControllerProgressing", Status: metav1.ConditionTrue, Reason: machineconfig.ReasonDraining}
	switch {
	case len(p.draining) > 0:
		progressing.Message = "Draining " + strings.Join(p.draining, ", ")
	case len(p.waiting) > 0:
		first := slices.Min(slices.Collect(maps.Keys(p.waiting)))
		progressing.Message = "Node " + first + ": " + p.waiting[first]
	default:
		progressing.Status, progressing.Reason, progressing.Message = metav1.ConditionFalse, patch.ReasonAsExpected, "No node is drained"
	}
	degraded := metav1.Condition{Type: "DrainControllerDegraded", Status: metav1.ConditionFalse, Reason: patch.ReasonAsExpected, Message: "Nothing is failing"}
	if err := p.err(); err != nil {
		degraded.Status, degraded.Reason, degraded.Message = metav1.ConditionTrue, "Error", err.Error()
	}
	return []metav1.Condition{progressing, degraded}
}

// publish merges conditions into the status.
func (r *reconciler) publish(ctx context.Context, live *operatorv1.MachineConfiguration, conditions []metav1.Condition) error {
	changed := live.DeepCopy()
	different := false
	for _, c := range conditions {
		different = meta.SetStatusCondition(&changed.Status.Conditions, c) || different
	}
	if !different {
		return nil
	}
	// The typed object would set more fields.
	if err := r.client.Status().Patch(ctx, changed, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patching the status of MachineConfiguration %s: %w", live.Name, err)
	}
	return nil
}
