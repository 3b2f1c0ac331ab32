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
	errVerdict  = errors.New("the outside tool says something else")
	errNotAsked = errors.New("not exactly one new request")
)

// differs compares what the tool should say of requests, an outcome and a reason, with what it has said.
func differs(want map[string]string, said map[string]joining.RequestResult) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		got, there := said[name]
		switch heard := got.Outcome + " " + got.Reason; {
		case !there:
			errs = append(errs, fmt.Errorf("%w: nothing of %s, which should be %q", errVerdict, name, want[name]))
		case heard != want[name]:
			errs = append(errs, fmt.Errorf("%w: of %s %q, which should be %q", errVerdict, name, heard, want[name]))
		}
	}
	return errors.Join(errs...)
}

// asking finds the requests for a node's certificate, by name, but for those that are known already.
func asking(requests []certificatesv1.CertificateSigningRequest, signer, node string, known []string) []string {
	var names []string
	for i := range requests {
		r := &requests[i]
		if r.Spec.SignerName == signer && subjectOf(r) == joining.Subject(node).CommonName && !slices.Contains(known, r.Name) {
			names = append(names, r.Name)
		}
	}
	return names
}

// subjectOf is the common name that a request asks for, or nothing.
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

// asks waits until the kubelet asks for a certificate, and returns the name of its request.
func (j *joiner) asks(ctx context.Context, signer string) (string, error) {
	var name string
	err := until(ctx, "the kubelet asks for its certificate by "+signer, patience, func(ctx context.Context) error {
		all, err := j.requests().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err //nolint:wrapcheck // until says what for
		}
		names := asking(all.Items, signer, j.node, j.known)
		if len(names) != 1 {
			return fmt.Errorf("%w: there are %d", errNotAsked, len(names))
		}
		name = names[0]
		return nil
	})
	j.known = append(j.known, name)
	return name, err
}

// witnessNode is a node that nobody has.
const witnessNode = "witness"

// nobodyElse holds that the request stays pending although the cluster's own approver has had its turn: a later request of somebody who may approve
// his own is approved.
func (j *joiner) nobodyElse(ctx context.Context, asked string) error {
	admin, ok := j.Kind.Clientset().(*kubernetes.Clientset)
	if !ok {
		return fmt.Errorf("%w: no client of the administrator", errEarly)
	}
	witness, err := joining.RequestClientCertificate(ctx, admin, witnessNode)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := witness.Certificate(ctx); err != nil {
		return err
	}
	return j.pending(ctx, asked)
}

// forget removes what was asked for beside the node, and the token.
func (j *joiner) forget(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
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
