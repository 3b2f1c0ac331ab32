package outside

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/approver"
)

// writeLimit is for one approval, which an interruption does not end.
const writeLimit = 30 * time.Second

// errChanged is returned where the request is not any more what was decided on.
var errChanged = errors.New("the request has changed")

// write approves a request, exactly as it was read: whoever wrote it since, or deleted it and made another under its name, gets
// another decision. Nothing but the approval subresource is written.
func (r *requests) write(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, because approver.Verdict, dryRun bool) error {
	intent := csr.DeepCopy()
	intent.Status.Conditions = append(intent.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: approver.ApprovalReason,
		Message: "Approved by sno's outside approver: " + because.Reason,
	})
	options := metav1.UpdateOptions{FieldManager: approver.FieldOwner}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("approving %s: %w", csr.Name, err)
	}
	// An interruption does not cut off an approval that is on its way: whoever interrupts learns what was approved.
	begun, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	_, err := r.client.UpdateApproval(begun, csr.Name, intent, options)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return errChanged
	case apierrors.IsForbidden(err):
		return fmt.Errorf("not permitted to approve requests for %s; config/outside has the role that is needed: %w", csr.Spec.SignerName, err)
	case err != nil:
		return fmt.Errorf("approving %s: %w", csr.Name, err)
	}
	return nil
}

// get reads the request again; nil when it is gone, or another one has its name.
func (r *requests) get(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (*certificatesv1.CertificateSigningRequest, error) {
	now, err := r.client.Get(ctx, csr.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s again: %w", csr.Name, err)
	case now.UID != csr.UID:
		return nil, nil
	}
	return now, nil
}
