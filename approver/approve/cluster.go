// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/requests"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/pages"
)

const (
	pageSize   = 500              // of requests; less than 2 MiB
	writeLimit = 30 * time.Second // of an approval, which an interruption does not cancel
	watchLimit = 10 * time.Minute

	// OpenShift publishes the current and former authorities of the kubelets here; the stock approver uses the same
	// ConfigMap.
	authorityNamespace, authorityName, authorityKey = "openshift-config-managed", "csr-controller-ca", "ca-bundle.crt"
)

var (
	errChanged   = errors.New("the request has changed")
	errAuthority = errors.New("cannot verify kubelets")
)

// cluster reads requests in pages and single nodes; the stock approver lists all nodes (U-APP-8).
type cluster struct {
	requests certificatesclient.CertificateSigningRequestInterface
	core     corev1client.CoreV1Interface
	pageSize int64
}

// eachRequest visits every request for the signer, and returns the resourceVersion from which to watch.
func (c cluster) eachRequest(ctx context.Context, signer string, visit func(*certificatesv1.CertificateSigningRequest)) (string, error) {
	from := ""
	err := pages.Each(ctx, func(ctx context.Context, at string) (string, error) {
		page, err := c.requests.List(ctx, metav1.ListOptions{FieldSelector: "spec.signerName=" + signer, Limit: c.pageSize, Continue: at})
		if err != nil {
			return "", err
		}
		from = cmp.Or(from, page.ResourceVersion)
		for i := range page.Items {
			visit(&page.Items[i])
		}
		return page.Continue, nil
	})
	if err != nil {
		return "", fmt.Errorf("reading the requests for %s: %w", signer, err)
	}
	return from, nil
}

// waitForRequest waits for a pending request or the end of the watch, and calls notify unless the context has ended.
func (c cluster) waitForRequest(ctx context.Context, signer, version string, notify func()) {
	events, err := c.requests.Watch(ctx, metav1.ListOptions{
		FieldSelector: "spec.signerName=" + signer, ResourceVersion: version, TimeoutSeconds: ptr.To(int64(watchLimit.Seconds())),
	})
	if err == nil {
		defer events.Stop()
		for event := range events.ResultChan() {
			csr, ok := event.Object.(*certificatesv1.CertificateSigningRequest)
			if !ok || (event.Type != watch.Deleted && !requests.Decided(csr)) {
				break
			}
		}
	}
	if ctx.Err() == nil {
		notify()
	}
}

// approve approves a request exactly as it was read; errChanged reports that it was modified, deleted or replaced
// since.
func (c cluster) approve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, reason string, dryRun bool) error {
	intent := csr.DeepCopy()
	intent.Status.Conditions = append(intent.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: approver.ApprovalReason,
		Message: "Approved by sno's outside approver: " + reason,
	})
	options := metav1.UpdateOptions{FieldManager: patch.FieldOwner(approver.Name)}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("approving %s: %w", csr.Name, err)
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	_, err := c.requests.UpdateApproval(limited, csr.Name, intent, options)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return errChanged
	case apierrors.IsForbidden(err):
		return fmt.Errorf("not permitted to approve requests for %s; config/approve has the role that is needed: %w", csr.Spec.SignerName, err)
	case err != nil:
		return fmt.Errorf("approving %s: %w", csr.Name, err)
	}
	return nil
}

// readAgain returns nil when the request was deleted or replaced.
func (c cluster) readAgain(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (*certificatesv1.CertificateSigningRequest, error) {
	now, err := c.requests.Get(ctx, csr.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && now.UID != csr.UID:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s again: %w", csr.Name, err)
	}
	return now, nil
}

func (c cluster) node(ctx context.Context, name string) (*corev1.Node, error) {
	node, err := c.core.Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading a node: %w", err)
	}
	return node, nil
}

// authority returns the authority of the kubelets, or nil. The CA of the API server is no substitute: it may sign for
// other programs.
func (c cluster) authority(ctx context.Context, file string) (*x509.CertPool, error) {
	var bundle []byte
	var err error
	where := "--kubelet-ca=" + file
	if file != "" {
		bundle, err = os.ReadFile(file)
	} else {
		where = "ConfigMap " + authorityNamespace + "/" + authorityName
		var published *corev1.ConfigMap
		published, err = c.core.ConfigMaps(authorityNamespace).Get(ctx, authorityName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err == nil {
			bundle = []byte(published.Data[authorityKey])
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errAuthority, where, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return nil, fmt.Errorf("%w: %s has no certificate in PEM form", errAuthority, where)
	}
	return pool, nil
}
