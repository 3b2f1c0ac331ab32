package outside

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch/patchtest"
)

// Written out, so that a renamed constant is noticed.
const (
	clientSigner, servingSigner = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"

	bootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
)

var bootstrapperGroups = []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator"}

// world is an API server, an inventory, and kubelets that are what the test says.
type world struct {
	*testing.T
	server *patchtest.APIServer
	admin  client.WithWatch
	dir    string
	// kubeconfig is what the tool connects with: somebody with the test's name, who may do everything.
	kubeconfig string
	ca         authority
	// before is told of every request that the tool sends to the API server; nil for nobody.
	before func(*http.Request)
	// away tells that the API server does not answer the tool.
	away atomic.Bool
	// missed tells that it was asked meanwhile.
	missed atomic.Bool
	// kubelets are what answers when a node's is called.
	kubelets map[string]func(context.Context) ([]*x509.Certificate, error)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := shared.Server(t)
	w := &world{T: t, server: server, admin: server.Admin(t), dir: t.TempDir(), ca: newAuthority(t), kubelets: map[string]func(context.Context) ([]*x509.Certificate, error){}}
	w.write("ca.pem", w.ca.pem)
	w.kubeconfig = server.Kubeconfig(t, t.Name(), "system:masters")
	w.letAsk()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, all := range []client.Object{&certificatesv1.CertificateSigningRequest{}, &corev1.Node{}} {
			if err := w.admin.DeleteAllOf(ctx, all, client.GracePeriodSeconds(0)); err != nil {
				t.Errorf("cleaning up: %v", err)
			}
		}
	})
	return w
}

// letAsk lets everybody make requests, as kubelets and bootstrappers may in life.
func (w *world) letAsk() {
	w.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "ask"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get", "list", "watch"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}},
	}
	w.must(client.IgnoreAlreadyExists(w.admin.Create(w.Context(), role)))
	w.must(client.IgnoreAlreadyExists(w.admin.Create(w.Context(), binding)))
	anybody := w.as("anybody")
	patchtest.Eventually(w, "everybody may ask", func() error {
		return anybody.List(w.Context(), &certificatesv1.CertificateSigningRequestList{}, client.Limit(1))
	})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name string, content []byte) {
	w.Helper()
	w.must(os.WriteFile(w.path(name), content, 0o600))
}

// expects writes an inventory in which these nodes may join now; a number after a colon is how many times.
func (w *world) expects(nodes ...string) {
	w.Helper()
	text := "version: 1\nnodes:\n"
	for i, node := range nodes {
		name, count, _ := strings.Cut(node, ":")
		if count == "" {
			count = "1"
		}
		text += fmt.Sprintf("- name: %s\n  addresses: [192.0.2.%d]\n  count: %s\n  window: {notBefore: %s, notAfter: %s}\n", name, i+1, count,
			time.Now().Add(-time.Minute).UTC().Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}
	w.write("nodes.yaml", []byte(text))
}

// as is somebody else, who may do everything.
func (w *world) as(user string, groups ...string) client.Client {
	w.Helper()
	config := w.server.Config(w, "impersonator", "system:masters")
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	c, err := client.New(config, client.Options{Scheme: w.server.Scheme()})
	w.must(err)
	return c
}

// joins makes the request of a node that joins, and returns its name.
func (w *world) joins(node string) string {
	w.Helper()
	return w.asks(bootstrapper, bootstrapperGroups, clientSigner, certificatesv1.UsageClientAuth, request(w, node, nil, nil))
}

// serves makes the request of a node that serves by these names and addresses.
func (w *world) serves(node string, names ...string) string {
	w.Helper()
	dns, ips := split(names)
	return w.asks("system:node:"+node, []string{"system:nodes"}, servingSigner, certificatesv1.UsageServerAuth, request(w, node, dns, ips))
}

func (w *world) asks(user string, groups []string, signer string, usage certificatesv1.KeyUsage, text []byte) string {
	w.Helper()
	r := newRequest(signer, usage, text)
	w.must(w.as(user, groups...).Create(w.Context(), r))
	return r.Name
}

func newRequest(signer string, usage certificatesv1.KeyUsage, text []byte) *certificatesv1.CertificateSigningRequest {
	r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"}}
	r.Spec.SignerName, r.Spec.Request = signer, text
	r.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage}
	return r
}

func (w *world) add(node string) {
	w.Helper()
	w.must(w.admin.Create(w.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}))
}

// approval is how the request stands: the reason of its approval, or empty.
func (w *world) approval(name string) string {
	w.Helper()
	r := &certificatesv1.CertificateSigningRequest{}
	w.must(w.admin.Get(w.Context(), client.ObjectKey{Name: name}, r))
	if len(r.Status.Conditions) == 0 {
		return ""
	}
	return string(r.Status.Conditions[0].Type) + " " + r.Status.Conditions[0].Reason
}

const ours = "Approved SnoNodeCSRApprove"

// isApproved checks which requests are approved by us; all others must be untouched.
func (w *world) isApproved(want bool, names ...string) {
	w.Helper()
	for _, name := range names {
		if got := w.approval(name); (got == ours) != want || (!want && got != "") {
			w.Errorf("%s is %q, want it approved: %t", name, got, want)
		}
	}
}

func split(names []string) (dns []string, ips []net.IP) {
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			ips = append(ips, ip)
		} else {
			dns = append(dns, name)
		}
	}
	return dns, ips
}

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// request is what a kubelet signs.
func request(t testing.TB, node string, dns []string, ips []net.IP) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}, DNSNames: dns, IPAddresses: ips,
	}, newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// authority signs for kubelets.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         []byte
}

func newAuthority(t testing.TB) authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubelet-signer"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// serving is the certificate with which the node's kubelet serves.
func (a authority) serving(t testing.TB, node string, names ...string) *x509.Certificate {
	t.Helper()
	dns, ips := split(names)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: dns, IPAddresses: ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, newKey(t).Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// answers has the node's kubelet answer with the certificate.
func (w *world) answers(node string, certificate *x509.Certificate) {
	w.kubelets[node] = func(context.Context) ([]*x509.Certificate, error) { return []*x509.Certificate{certificate}, nil }
}

// run is Main with the test's kubelets.
func (w *world) run(ctx context.Context, stdout, stderr io.Writer, args ...string) (int, error) {
	w.Helper()
	var complaint bytes.Buffer
	o, err := parse(append([]string{
		"--kubeconfig=" + w.kubeconfig, "--inventory=" + w.path("nodes.yaml"), "--kubelet-ca=" + w.path("ca.pem"),
	}, args...), &complaint)
	if err != nil {
		w.Fatalf("%v: %s", err, &complaint)
	}
	t := newTool(o, stderr)
	t.call = func(ctx context.Context, node *corev1.Node) ([]*x509.Certificate, error) {
		answer, ok := w.kubelets[node.Name]
		if !ok {
			return nil, errNoAnswer
		}
		return answer(ctx)
	}
	t.wrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if w.away.Load() {
				w.missed.Store(true)
				return nil, errNoAnswer
			}
			if w.before != nil {
				w.before(r)
			}
			return next.RoundTrip(r)
		})
	}
	return t.run(ctx, stdout)
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
