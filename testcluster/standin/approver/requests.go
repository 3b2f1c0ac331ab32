// SPDX-License-Identifier: Apache-2.0

package approver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/approver/requests"
)

const (
	// approvalReason is that of the stock approver (U-APP-6).
	approvalReason = "NodeCSRApprove"
	// changedRequest is the delay after a request was modified between its read and its approval.
	changedRequest = 50 * time.Millisecond
	// restInterval is the time between passes without pending requests: Machines are not watched.
	restInterval = 5 * time.Minute
)

type reconciler struct {
	// live reads without a cache: an approval must not depend on an old object (U-APP-8).
	live     client.Reader
	writer   client.Client
	stock    bool
	disabled bool // the flow for client certificates, by the configuration
	retry    time.Duration
}

// reconcile approves the pending requests that are proven, and publishes the conditions.
func (r *reconciler) reconcile(ctx context.Context, _ client.ObjectKey) (time.Duration, error) {
	s, err := r.read(ctx)
	if s == nil {
		return 0, err
	}
	clients := r.clientFlow(s)
	errs, after := []error{err}, restInterval
	for i := range s.requests {
		csr := &s.requests[i]
		if requests.Decided(csr) {
			continue
		}
		verdict := r.decide(csr, s, clients)
		if !verdict.Approve {
			logr.FromContextOrDiscard(ctx).Info("Not approved", "request", csr.Name, "node", verdict.Node, "flow", verdict.Flow,
				"reason", verdict.Reason, "message", verdict.Message)
			after = min(after, r.retry)
			continue
		}
		switch err := r.approve(ctx, csr, verdict); {
		case err == nil:
			if verdict.Flow == requests.ClientFlow {
				s.approvals[verdict.Node]++ // counts for the next request
			}
		case apierrors.IsConflict(err):
			after = changedRequest
		case !apierrors.IsNotFound(err):
			errs = append(errs, fmt.Errorf("approving %s: %w", csr.Name, err))
		}
	}
	return after, errors.Join(append(errs, r.publish(ctx, clients))...)
}

// decide decides on one request. Without its flow a client certificate is not approved.
func (r *reconciler) decide(csr *certificatesv1.CertificateSigningRequest, s *sources, clients flow) requests.Verdict {
	verdict := vendoredDecide(csr, s)
	if r.stock {
		verdict = stockDecide(csr, s)
	}
	if verdict.Flow == requests.ClientFlow && !clients.enabled {
		verdict.Approve, verdict.Reason, verdict.Message = false, clients.reason, clients.message
	}
	return verdict
}

// approve approves a request exactly as it was read.
func (r *reconciler) approve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, verdict requests.Verdict) error {
	approved := csr.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: approvalReason,
		Message: "This request was approved by the machine approver: " + verdict.Reason,
	})
	if err := r.writer.SubResource("approval").Update(ctx, approved); err != nil {
		return err
	}
	logr.FromContextOrDiscard(ctx).Info("Approved", "request", csr.Name, "node", verdict.Node, "flow", verdict.Flow, "reason", verdict.Reason)
	return nil
}
