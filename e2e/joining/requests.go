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
	"fmt"
	"net"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/keyutil"

	"github.com/solonode/sno/testcluster/embedded"
)

const (
	bootstrapNamespace, bootstrapAccount  = "openshift-machine-config-operator", "node-bootstrapper"
	authorityNamespace, authorityName     = "openshift-config-managed", "csr-controller-ca"
	bootstrapRole                         = "system:node-bootstrapper"
	poll                                  = 50 * time.Millisecond
	nodePrefix, nodesGroup, requestPrefix = "system:node:", "system:nodes", "csr-"
)

// Prepare creates what an installation contains: the bootstrapper with its rights, and the CA of kubelets.
func Prepare(ctx context.Context, c *embedded.Cluster) error {
	for _, namespace := range []string{bootstrapNamespace, authorityNamespace} {
		if err := c.EnsureNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	kube := c.Clientset()
	_, err := kube.CoreV1().ServiceAccounts(bootstrapNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: bootstrapAccount}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the bootstrapper: %w", err)
	}
	_, err = kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "system-bootstrap-node-bootstrapper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: bootstrapRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: bootstrapNamespace, Name: bootstrapAccount}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("bind the bootstrapper's role: %w", err)
	}
	_, err = kube.CoreV1().ConfigMaps(authorityNamespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: authorityName}, Data: map[string]string{"ca-bundle.crt": string(c.RESTConfig().CAData)},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("publish the CA of kubelets: %w", err)
	}
	return nil
}

// Bootstrapper returns a client with the bootstrapper's token.
func Bootstrapper(ctx context.Context, c *embedded.Cluster) (*kubernetes.Clientset, error) {
	path, err := c.KubeconfigForServiceAccount(ctx, bootstrapNamespace, bootstrapAccount)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("connect as the bootstrapper: %w", err)
	}
	return connect(config)
}

func connect(config *rest.Config) (*kubernetes.Clientset, error) {
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return kube, nil
}

// Request is a certificate signing request with its key.
type Request struct {
	Name string
	Key  crypto.Signer

	kube *kubernetes.Clientset
}

// RequestClientCertificate requests the client certificate of a node that joins.
func RequestClientCertificate(ctx context.Context, bootstrapper *kubernetes.Clientset, node string) (Request, error) {
	return CreateRequest(ctx, bootstrapper, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth, x509.CertificateRequest{Subject: Subject(node)})
}

// RequestServingCertificate requests a node's serving certificate for these names and addresses, as the node.
func RequestServingCertificate(ctx context.Context, node *kubernetes.Clientset, name string, names []string, addresses ...net.IP) (Request, error) {
	return CreateRequest(ctx, node, certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth,
		x509.CertificateRequest{Subject: Subject(name), DNSNames: names, IPAddresses: addresses})
}

// Subject returns the subject of a node.
func Subject(node string) pkix.Name {
	return pkix.Name{CommonName: nodePrefix + node, Organization: []string{nodesGroup}}
}

// CreateRequest creates a request with a new key.
func CreateRequest(ctx context.Context, kube *kubernetes.Clientset, signer string, usage certificatesv1.KeyUsage, template x509.CertificateRequest) (Request, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Request{}, fmt.Errorf("make a key: %w", err)
	}
	text, err := sign(key, template)
	if err != nil {
		return Request{}, err
	}
	made, err := kube.CertificatesV1().CertificateSigningRequests().Create(ctx, object(signer, usage, text), metav1.CreateOptions{})
	if err != nil {
		return Request{}, fmt.Errorf("create a request: %w", err)
	}
	return Request{Name: made.Name, Key: key, kube: kube}, nil
}

func sign(key crypto.Signer, template x509.CertificateRequest) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		return nil, fmt.Errorf("sign a request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

func object(signer string, usage certificatesv1.KeyUsage, text []byte) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: requestPrefix},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: text, SignerName: signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
		},
	}
}

// Certificate waits until the request is signed, and returns the certificate with the key.
func (r Request) Certificate(ctx context.Context) (tls.Certificate, error) {
	var signed []byte
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		live, err := r.kube.CertificatesV1().CertificateSigningRequests().Get(ctx, r.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		signed = live.Status.Certificate
		return len(signed) > 0, nil
	})
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("wait until %s is signed: %w", r.Name, err)
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(r.Key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("encode a key: %w", err)
	}
	pair, err := tls.X509KeyPair(signed, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the certificate of %s: %w", r.Name, err)
	}
	return pair, nil
}

// Connect returns a client that authenticates only with the signed certificate.
func (r Request) Connect(ctx context.Context, c *embedded.Cluster) (*kubernetes.Clientset, error) {
	certificate, err := r.Certificate(ctx)
	if err != nil {
		return nil, err
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(r.Key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	admin := c.RESTConfig()
	return connect(&rest.Config{Host: admin.Host, TLSClientConfig: rest.TLSClientConfig{
		CAData: admin.CAData, KeyData: key, CertData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}),
	}})
}
