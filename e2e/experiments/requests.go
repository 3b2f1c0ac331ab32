// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/certificates/v1"

	"github.com/solonode/sno/e2e/joining"
)

var (
	errOutcome      = errors.New("the outside tool reports another outcome")
	errNotRequested = errors.New("not exactly one new request")
)

func differs(want map[string]string, results map[string]joining.RequestResult) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		got, there := results[name]
		switch outcome := got.Outcome + " " + got.Reason; {
		case !there:
			errs = append(errs, fmt.Errorf("%w: no outcome of %s, want %q", errOutcome, name, want[name]))
		case outcome != want[name]:
			errs = append(errs, fmt.Errorf("%w: outcome of %s is %q, want %q", errOutcome, name, outcome, want[name]))
		}
	}
	return errors.Join(errs...)
}

func newRequests(requests []certificatesv1.CertificateSigningRequest, signer, node string, known []string) []string {
	var names []string
	for i := range requests {
		r := &requests[i]
		if r.Spec.SignerName == signer && subjectOf(r) == joining.Subject(node).CommonName && !slices.Contains(known, r.Name) {
			names = append(names, r.Name)
		}
	}
	return names
}

func subjectOf(request *certificatesv1.CertificateSigningRequest) string {
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil {
		return ""
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return ""
	}
	return parsed.Subject.CommonName
}

func (j *joiner) requests() typed.CertificateSigningRequestInterface {
	return j.Kind.Clientset().CertificatesV1().CertificateSigningRequests()
}

func (j *joiner) waitForRequest(ctx context.Context, signer string) (string, error) {
	var name string
	err := until(ctx, "the kubelet requests its certificate of "+signer, waitTimeout, func(ctx context.Context) error {
		all, err := j.requests().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err //nolint:wrapcheck // until wraps it
		}
		names := newRequests(all.Items, signer, j.node, j.known)
		if len(names) != 1 {
			return fmt.Errorf("%w: have %d", errNotRequested, len(names))
		}
		name = names[0]
		return nil
	})
	j.known = append(j.known, name)
	return name, err
}

const witnessNode = "witness"

// onlyTool checks that the request stays pending although the cluster's own approver has processed later ones: that of
// an administrator, who may approve such requests, is approved.
func (j *joiner) onlyTool(ctx context.Context, request string) error {
	admin, ok := j.Kind.Clientset().(*kubernetes.Clientset)
	if !ok {
		return fmt.Errorf("%w: no client of the administrator", errEarly)
	}
	witness, err := joining.RequestClientCertificate(ctx, admin, witnessNode)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	if _, err := witness.Certificate(ctx); err != nil {
		return err
	}
	return j.pending(ctx, request)
}

func (j *joiner) forget(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitTimeout)
	defer cancel()
	all, err := j.requests().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list requests: %w", err)
	}
	var errs []error
	for i := range all.Items {
		if slices.Contains(j.hostile, all.Items[i].Name) || subjectOf(&all.Items[i]) == joining.Subject(witnessNode).CommonName {
			errs = append(errs, j.requests().Delete(ctx, all.Items[i].Name, metav1.DeleteOptions{}))
		}
	}
	if j.token != "" {
		_, err := j.onControlPlane(ctx, "kubeadm", "token", "delete", j.token)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
