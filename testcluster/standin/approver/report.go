// SPDX-License-Identifier: Apache-2.0

package approver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/standin"
)

const (
	operatorName = "machine-approver"
	// maxNote is the limit of the API server for the note of an event.
	maxNote = 1024

	conditionClients = configv1.ClusterStatusConditionType("NodeClientApprovalEnabled")
	conditionPending = configv1.ClusterStatusConditionType("CertificateRequestsPending")
	reasonTooMany    = "TooManyRequestsPending"
)

// explain reports why a request is pending, once for each reason: in the log, and in an event about the request.
func (r *reconciler) explain(ctx context.Context, d decision) {
	if d.changed || r.reported[d.csr.UID] == d.verdict.Reason {
		return
	}
	r.reported[d.csr.UID] = d.verdict.Reason
	logr.FromContextOrDiscard(ctx).Info("Not approved", "request", d.csr.Name, "node", d.verdict.Node, "flow", d.verdict.Flow,
		"reason", d.verdict.Reason, "message", d.verdict.Message)
	r.events.Eventf(d.csr, nil, corev1.EventTypeWarning, d.verdict.Reason, "Decide", "%s", shortened("Not approved: "+d.verdict.Message))
}

// shortened returns valid text of at most maxNote bytes.
func shortened(text string) string {
	if len(text) > maxNote {
		text = text[:maxNote]
	}
	return strings.ToValidUTF8(text, "")
}

// forget removes requests that are no longer pending.
func (r *reconciler) forget(pending []*certificatesv1.CertificateSigningRequest) {
	here := sets.New[types.UID]()
	for _, csr := range pending {
		here.Insert(csr.UID)
	}
	maps.DeleteFunc(r.reported, func(uid types.UID, _ string) bool { return !here.Has(uid) })
}

func condition(kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string) configv1.ClusterOperatorStatusCondition {
	return configv1.ClusterOperatorStatusCondition{Type: kind, Status: status, Reason: reason, Message: message}
}

// conditions returns those of the stock approver, which is always available (U-APP-1), and with the vendored module
// whether client certificates are approved, and whether requests wait for too long.
func (r *reconciler) conditions(done pass) []configv1.ClusterOperatorStatusCondition {
	all := []configv1.ClusterOperatorStatusCondition{
		condition(configv1.OperatorAvailable, configv1.ConditionTrue, reasonAsExpected, "The machine approver is available"),
		condition(configv1.OperatorProgressing, configv1.ConditionFalse, reasonAsExpected, ""),
		condition(configv1.OperatorDegraded, configv1.ConditionFalse, reasonAsExpected, ""),
		condition(configv1.OperatorUpgradeable, configv1.ConditionTrue, reasonAsExpected, ""),
	}
	if !r.rules.reports {
		return all
	}
	status := configv1.ConditionFalse
	switch {
	case done.clients.unknown:
		status = configv1.ConditionUnknown
	case done.clients.enabled:
		status = configv1.ConditionTrue
	}
	pending := condition(conditionPending, configv1.ConditionFalse, reasonAsExpected, "No certificate request of a node is pending for too long")
	if result := done.aging.Observe(time.Now()); result != nil {
		pending = condition(conditionPending, configv1.ConditionTrue, result.Reason, result.Message)
	}
	if done.limit > 0 {
		pending = condition(conditionPending, configv1.ConditionTrue, reasonTooMany, fmt.Sprintf(
			"More than %d requests of the last hour are pending, so none is approved; find out who creates them, and delete those that no node needs", done.limit))
	}
	return append(all, condition(conditionClients, status, done.clients.reason, done.clients.message), pending)
}

// publish merges the conditions into the ClusterOperator's status, and writes only what differs. The other parts of the
// status remain. The resource version prevents that it overwrites writes of other clients.
func (r *reconciler) publish(ctx context.Context, done pass) error {
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
	changed.Status.Conditions = merged(live.Status.Conditions, r.conditions(done), metav1.Now())
	return standin.UpdateStatus(ctx, r.writer, live, changed)
}

// merged replaces conditions of the same type. A time changes only with its status.
func merged(present, conditions []configv1.ClusterOperatorStatusCondition, now metav1.Time) []configv1.ClusterOperatorStatusCondition {
	result := slices.Clone(present)
	for _, c := range conditions {
		c.LastTransitionTime = now
		i := slices.IndexFunc(result, func(p configv1.ClusterOperatorStatusCondition) bool { return p.Type == c.Type })
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
