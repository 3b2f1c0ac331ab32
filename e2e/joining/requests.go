// SPDX-License-Identifier: Apache-2.0

package joining

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // a dot import, as in specs
	. "github.com/onsi/gomega"    //nolint:staticcheck // the same
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/keyutil"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/embedded"
)

const (
	nodePrefix, nodesGroup = "system:node:", "system:nodes"

	clientSigner  = certificatesv1.KubeAPIServerClientKubeletSignerName
	servingSigner = certificatesv1.KubeletServingSignerName
)

// usages are those of a signer's certificates besides the signature.
var usages = map[string]certificatesv1.KeyUsage{clientSigner: certificatesv1.UsageClientAuth, servingSigner: certificatesv1.UsageServerAuth}

// Bootstrapper returns a client with the bootstrapper's token.
func Bootstrapper(ctx context.Context, c *embedded.Cluster) *kubernetes.Clientset {
	GinkgoHelper()
	path := suite.Must(c.KubeconfigForServiceAccount(ctx, framework.BootstrapNamespace, framework.BootstrapAccount))
	return connect(suite.Must(clientcmd.BuildConfigFromFlags("", path)))
}

func connect(config *rest.Config) *kubernetes.Clientset {
	GinkgoHelper()
	config.QPS = -1
	return suite.Must(kubernetes.NewForConfig(config))
}

// Request is a certificate signing request with its key.
type Request struct {
	Name string

	key  crypto.Signer
	kube *kubernetes.Clientset
}

// RequestClientCertificate requests the client certificate of a node that joins.
func RequestClientCertificate(ctx context.Context, bootstrapper *kubernetes.Clientset, node string) Request {
	GinkgoHelper()
	return CreateRequest(ctx, bootstrapper, clientSigner, x509.CertificateRequest{Subject: Subject(node)})
}

// RequestServingCertificate requests a node's serving certificate for these names and addresses, as the node.
func RequestServingCertificate(ctx context.Context, node *kubernetes.Clientset, name string, names []string, addresses ...net.IP) Request {
	GinkgoHelper()
	return CreateRequest(ctx, node, servingSigner, x509.CertificateRequest{Subject: Subject(name), DNSNames: names, IPAddresses: addresses})
}

// Subject returns the subject of a node.
func Subject(node string) pkix.Name {
	return pkix.Name{CommonName: nodePrefix + node, Organization: []string{nodesGroup}}
}

// CreateRequest creates a request with a new key.
func CreateRequest(ctx context.Context, kube *kubernetes.Clientset, signer string, template x509.CertificateRequest) Request {
	GinkgoHelper()
	return submit(ctx, kube, signer, suite.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), template)
}

func submit(ctx context.Context, kube *kubernetes.Clientset, signer string, key crypto.Signer, template x509.CertificateRequest) Request {
	GinkgoHelper()
	made := suite.Must(kube.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: Encode(key, template), SignerName: signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usages[signer]},
		},
	}, metav1.CreateOptions{}))
	return Request{Name: made.Name, key: key, kube: kube}
}

// Encode returns a signed request as PEM.
func Encode(key crypto.Signer, template x509.CertificateRequest) []byte {
	GinkgoHelper()
	der := suite.Must(x509.CreateCertificateRequest(rand.Reader, &template, key))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// signed waits until the request is signed, and returns the certificate and the key as PEM.
func (r Request) signed(ctx context.Context) (certificate, key []byte) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) ([]byte, error) {
		live, err := r.kube.CertificatesV1().CertificateSigningRequests().Get(ctx, r.Name, metav1.GetOptions{})
		if err == nil {
			certificate = live.Status.Certificate
		}
		return certificate, err
	}).ShouldNot(BeEmpty(), "%s is signed", r.Name)
	return certificate, suite.Must(keyutil.MarshalPrivateKeyToPEM(r.key))
}

// Certificate waits until the request is signed, and returns the certificate with the key.
func (r Request) Certificate(ctx context.Context) tls.Certificate {
	GinkgoHelper()
	certificate, key := r.signed(ctx)
	return suite.Must(tls.X509KeyPair(certificate, key))
}

// Connect returns a client that authenticates only with the signed certificate.
func (r Request) Connect(ctx context.Context, c *embedded.Cluster) *kubernetes.Clientset {
	GinkgoHelper()
	certificate, key := r.signed(ctx)
	admin := c.RESTConfig()
	return connect(&rest.Config{Host: admin.Host, TLSClientConfig: rest.TLSClientConfig{CAData: admin.CAData, KeyData: key, CertData: certificate}})
}
