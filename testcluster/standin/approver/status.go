// SPDX-License-Identifier: Apache-2.0

package approver

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/standin"
)

// conditions returns those of the stock approver, which is always available (U-APP-1), and with the vendored module
// whether client certificates are approved.
func (r *reconciler) conditions(clients flow) []configv1.ClusterOperatorStatusCondition {
	condition := func(kind string, status configv1.ConditionStatus, reason, message string) configv1.ClusterOperatorStatusCondition {
		return configv1.ClusterOperatorStatusCondition{
			Type: configv1.ClusterStatusConditionType(kind), Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
		}
	}
	all := []configv1.ClusterOperatorStatusCondition{
		condition("Available", configv1.ConditionTrue, reasonAsExpected, "The machine approver is available"),
		condition("Progressing", configv1.ConditionFalse, reasonAsExpected, ""),
		condition("Degraded", configv1.ConditionFalse, reasonAsExpected, ""),
		condition("Upgradeable", configv1.ConditionTrue, reasonAsExpected, ""),
	}
	if r.stock {
		return all
	}
	status := configv1.ConditionFalse
	switch {
	case clients.unknown:
		status = configv1.ConditionUnknown
	case clients.enabled:
		status = configv1.ConditionTrue
	}
	return append(all, condition("NodeClientApprovalEnabled", status, clients.reason, clients.message))
}

// publish merges the conditions into the ClusterOperator's status, and writes only what differs. The other parts of the
// status remain. The resource version prevents that it overwrites writes of other clients.
func (r *reconciler) publish(ctx context.Context, clients flow) error {
	live := &configv1.ClusterOperator{}
	err := r.live.Get(ctx, client.ObjectKey{Name: operatorName}, live)
	if apierrors.IsNotFound(err) {
		live = &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: operatorName}}
		err = r.writer.Create(ctx, live)
	}
	if err != nil {
		return fmt.Errorf("reading or creating ClusterOperator %s: %w", operatorName, err)
	}
	changed := live.DeepCopy()
	for _, c := range r.conditions(clients) {
		i := slices.IndexFunc(changed.Status.Conditions, func(p configv1.ClusterOperatorStatusCondition) bool { return p.Type == c.Type })
		if i < 0 {
			changed.Status.Conditions = append(changed.Status.Conditions, c)
			continue
		}
		if present := changed.Status.Conditions[i]; present.Status == c.Status {
			c.LastTransitionTime = present.LastTransitionTime // it changes only with the status
		}
		changed.Status.Conditions[i] = c
	}
	return standin.UpdateStatus(ctx, r.writer, live, changed)
}
