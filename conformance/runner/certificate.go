// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

// requestCertificate creates the request that a new node sends first, watches it for times.Quiet, and deletes it.
func (r *Runner) requestCertificate(ctx context.Context) (*catalogue.CSROutcome, error) {
	text, err := joinRequest()
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(r.target.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
		Groups:   []string{"system:serviceaccounts:openshift-machine-config-operator", "system:serviceaccounts", "system:authenticated"},
	}
	bootstrapper, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect as the node bootstrapper: %w", err)
	}
	request, err := bootstrapper.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: namespacePrefix, Labels: map[string]string{cluster.RunLabel: r.id}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: text, SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("%w: the node bootstrapper of this cluster may not create certificatesigningrequests.certificates.k8s.io, so no node can join: "+
			"bind ClusterRole system:node-bootstrapper to its service account: %w", catalogue.ErrForbidden, err)
	}
	if err != nil {
		return nil, fmt.Errorf("create a certificate request as the node bootstrapper: %w", err)
	}
	defer func() { // after an interruption too; after a failure the cluster deletes the request itself, after a day
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.target.Times.Cleanup)
		defer cancel()
		_ = r.set.CertificatesV1().CertificateSigningRequests().Delete(ctx, request.Name, metav1.DeleteOptions{})
	}()
	outcome := &catalogue.CSROutcome{}
	_, err = cluster.Within(ctx, r.target.Times.Poll, r.target.Times.Quiet, func(ctx context.Context) (bool, error) {
		live, err := r.set.CertificatesV1().CertificateSigningRequests().Get(ctx, request.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, condition := range live.Status.Conditions {
			outcome.Approved = outcome.Approved || condition.Type == certificatesv1.CertificateApproved
			outcome.Denied = outcome.Denied || condition.Type == certificatesv1.CertificateDenied
		}
		return outcome.Approved || outcome.Denied, nil
	})
	if err != nil {
		return nil, fmt.Errorf("watch the certificate request: %w", err)
	}
	return outcome, nil
}

func joinRequest() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	text, err := cert.MakeCSR(key, &pkix.Name{CommonName: "system:node:" + catalogue.UnknownNode, Organization: []string{"system:nodes"}}, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("create a certificate request: %w", err)
	}
	return text, nil
}
