// SPDX-License-Identifier: Apache-2.0

package approver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	approverdecision "github.com/solonode/sno/approver/decision"
	"github.com/solonode/sno/approver/requests"
)

const (
	// approvalReason is that of the stock approver (U-APP-6).
	approvalReason = "NodeCSRApprove"
	// maxPendingAge and maxPendingExtra limit the pending requests (U-APP-3).
	maxPendingAge, maxPendingExtra = time.Hour, 100
	// changedRequest is the delay after a request was modified between its read and its approval.
	changedRequest = 50 * time.Millisecond
	// restInterval is the time between passes without pending requests: Machines are not watched.
	restInterval = 5 * time.Minute
)

type reconciler struct {
	reader
	writer   client.Client
	rules    rules
	disabled bool
	retry    time.Duration
	events   events.EventRecorder
	// reported is the last reason with an event, by request.
	reported map[types.UID]string
}

// pass is the outcome of decisions on all requests.
type pass struct {
	clients flow
	aging   approverdecision.Aging
	pending int
	// limit is set if there are too many pending requests, and none was decided.
	limit int
	after time.Duration
}

// reconcile decides on all requests.
func (r *reconciler) reconcile(ctx context.Context, _ client.ObjectKey) (time.Duration, error) {
	all, err := r.requests(ctx)
	if err != nil {
		return 0, err
	}
	done, err := r.decide(ctx, all)
	return done.after, errors.Join(err, r.publish(ctx, done))
}

// decide approves what is proven, and reports why the rest is pending.
func (r *reconciler) decide(ctx context.Context, all []certificatesv1.CertificateSigningRequest) (pass, error) {
	now := time.Now()
	s, err := r.sources(ctx, now, all)
	s.disabled = r.disabled
	done := pass{clients: r.rules.clientFlow(s), after: restInterval, aging: approverdecision.Aging{Limits: approverdecision.AgeLimits{Pending: approverdecision.DefaultAgeLimits.Pending}}}
	var pending []*certificatesv1.CertificateSigningRequest
	recent := 0
	for i := range all {
		if csr := &all[i]; !requests.Decided(csr) {
			pending = append(pending, csr)
			if now.Sub(csr.CreationTimestamp.Time) <= maxPendingAge {
				recent++
			}
		}
	}
	r.forget(pending)
	if limit := max(len(s.nodes), len(s.machines)) + maxPendingExtra; recent > limit {
		logr.FromContextOrDiscard(ctx).Info("Too many requests are pending, deciding none", "pending", recent, "limit", limit)
		done.pending, done.limit, done.after = recent, limit, r.retry
		return done, err
	}
	errs := []error{err}
	refused, err := r.approve(ctx, pending, s, done.clients)
	errs = append(errs, err)
	// Kubelets last, so that slow ones do not delay other requests.
	var ask []string
	var again, final []decision
	for _, d := range refused {
		if d.verdict.NeedsKubeletCertificate() {
			again = append(again, d)
			ask = append(ask, d.verdict.Node)
		} else {
			final = append(final, d)
		}
	}
	slices.Sort(ask)
	errs = append(errs, r.callKubelets(ctx, s, slices.Compact(ask)))
	var renewals []*certificatesv1.CertificateSigningRequest
	for _, d := range again {
		renewals = append(renewals, d.csr)
	}
	refused, err = r.approve(ctx, renewals, s, done.clients)
	errs = append(errs, err)
	for _, d := range append(final, refused...) {
		done.aging.AddPending(d.csr.CreationTimestamp.Time)
		r.explain(ctx, d)
		done.after = min(done.after, r.retry)
		if d.changed {
			done.after = changedRequest
		}
	}
	return done, errors.Join(errs...)
}

// decision is one that did not end with an approval.
type decision struct {
	csr     *certificatesv1.CertificateSigningRequest
	verdict requests.Verdict
	changed bool // by another client since it was read
}

// approve approves the requests that are proven, and returns the others.
func (r *reconciler) approve(
	ctx context.Context, pending []*certificatesv1.CertificateSigningRequest, s *sources, clients flow,
) (refused []decision, _ error) {
	var errs []error
	for _, csr := range pending {
		d := decision{csr: csr, verdict: r.rules.verdict(csr, s, clients)}
		if !d.verdict.Approve {
			refused = append(refused, d)
			continue
		}
		switch err := r.write(ctx, csr, d.verdict); {
		case err == nil:
			if d.verdict.Flow == requests.ClientFlow {
				s.approvals[d.verdict.Node]++ // counts for the next request
			}
		case apierrors.IsConflict(err):
			d.changed = true
			refused = append(refused, d)
		case apierrors.IsNotFound(err):
		default:
			errs = append(errs, fmt.Errorf("approving %s: %w", csr.Name, err))
		}
	}
	return refused, errors.Join(errs...)
}

// write approves a request exactly as it was read.
func (r *reconciler) write(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, verdict requests.Verdict) error {
	approved := csr.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: approvalReason,
		Message: "This request was approved by the machine approver: " + verdict.Reason,
	})
	if err := r.writer.SubResource("approval").Update(ctx, approved); err != nil {
		return err
	}
	logr.FromContextOrDiscard(ctx).Info("Approved", "request", csr.Name, "node", verdict.Node, "flow", verdict.Flow, "reason", verdict.Reason)
	delete(r.reported, csr.UID)
	return nil
}
