// SPDX-License-Identifier: Apache-2.0

package jointest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/install/internal/fixture"
)

// Allow allows all authenticated users to request certificates.
func Allow(ctx context.Context, config *rest.Config) error {
	_, err := kubernetes.NewForConfigOrDie(config).RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "ask"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"}},
	}, metav1.CreateOptions{})
	return err //nolint:wrapcheck // of a test
}

// Request is a certificate request, and the user who makes it.
type Request struct {
	User     rest.ImpersonationConfig
	signer   string
	usages   []certificatesv1.KeyUsage
	template x509.CertificateRequest
}

func subject(node string) pkix.Name {
	return pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + node}
}

// Client is a node's request for a client certificate, by the bootstrapper.
func Client(node string) Request {
	return Request{
		rest.ImpersonationConfig{
			UserName: "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
			Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"},
		},
		certificatesv1.KubeAPIServerClientKubeletSignerName, []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		x509.CertificateRequest{Subject: subject(node)},
	}
}

// Serving is a node's request for a serving certificate with DNS names and addresses, by itself.
func Serving(node string, names ...string) Request {
	r := Request{
		rest.ImpersonationConfig{UserName: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"}},
		certificatesv1.KubeletServingSignerName, []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		x509.CertificateRequest{Subject: subject(node)},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			r.template.IPAddresses = append(r.template.IPAddresses, ip)
		} else {
			r.template.DNSNames = append(r.template.DNSNames, name)
		}
	}
	return r
}

// Register creates the Node of a host, unless it is there, and sets whether it is Ready.
func Register(t testing.TB, client kubernetes.Interface, host string, ready corev1.ConditionStatus) {
	t.Helper()
	n, err := client.CoreV1().Nodes().Get(t.Context(), host, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		n, err = client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host}}, metav1.CreateOptions{})
	}
	fixture.NoError(t, err)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	fixture.Must(client.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{}))
}

// Decided returns the conditions of the requests that are decided, by the names of the requests.
func Decided(t testing.TB, client kubernetes.Interface) map[string]string {
	t.Helper()
	list := fixture.Must(client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{}))
	decided := map[string]string{}
	for _, csr := range list.Items {
		for _, c := range csr.Status.Conditions {
			decided[csr.Name] += string(c.Type) + " " + c.Reason
		}
	}
	return decided
}

// Create creates a request with a new key.
func (r Request) Create(t testing.TB, config *rest.Config, name string) {
	t.Helper()
	der := fixture.Must(x509.CreateCertificateRequest(rand.Reader, &r.template, newKey()))
	config = rest.CopyConfig(config)
	config.Impersonate = r.User
	client := kubernetes.NewForConfigOrDie(config).CertificatesV1().CertificateSigningRequests()
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: r.signer, Usages: r.usages,
		},
	}
	// The authorizer's cache has a new binding a moment later.
	fixture.NoError(t, wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := client.Create(ctx, csr, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	}))
}

func newKey() *ecdsa.PrivateKey {
	return fixture.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
}

// Certificate writes a certificate of a node that ends at a time.
func Certificate(t testing.TB, root, name, node string, end time.Time) {
	t.Helper()
	key := newKey()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: subject(node), NotAfter: end}
	der := fixture.Must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	fixture.Put(t, root, name, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}
