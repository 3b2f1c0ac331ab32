// SPDX-License-Identifier: Apache-2.0

package approve_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/approver/approve"
	"github.com/solonode/sno/testcluster/apiserver"
)

// shared has no snapshots in its watch cache, so that a list that continues after a compaction reads etcd, as on older
// releases.
var shared = apiserver.NewShared(apiserver.Options{Flags: map[string]string{"feature-gates": "ListFromCacheSnapshot=false"}})

func TestMain(m *testing.M) {
	apiserver.MaybeRunProgram(func(args []string) int { return approve.Main(args, os.Stdout, os.Stderr) })
	os.Exit(shared.Main(m))
}

// Literals, so that a changed constant fails a test.
const (
	pageSize = 500

	clientSigner, servingSigner = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"

	bootstrapper   = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
	approvedByTool = "Approved SnoNodeCSRApprove"
)

var (
	bootstrapperGroups = []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator"}
	errNoAnswer        = errors.New("no answer")
)

// testCluster is an API server, an inventory and fake kubelets.
type testCluster struct {
	*testing.T
	server        *apiserver.Server
	admin         client.WithWatch
	dir           string
	kubeconfig    string
	ca            authority
	crashInjector apiserver.CrashInjector
	pageSize      int64
	users         map[string]bool
	kubelets      map[string]func(context.Context) ([]*x509.Certificate, error)
}

func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	server := shared.Server(t)
	c := &testCluster{T: t, server: server, admin: server.Admin(t), dir: t.TempDir(), ca: newAuthority(), pageSize: pageSize, users: map[string]bool{},
		kubelets: map[string]func(context.Context) ([]*x509.Certificate, error){}}
	c.write("ca.pem", string(must(cert.EncodeCertificates(c.ca.certificate))))
	c.kubeconfig = server.Kubeconfig(t, t.Name(), "system:masters")
	t.Cleanup(func() {
		for _, all := range []client.Object{&certificatesv1.CertificateSigningRequest{}, &corev1.Node{}} {
			if err := c.admin.DeleteAllOf(context.WithoutCancel(t.Context()), all, client.GracePeriodSeconds(0)); err != nil {
				t.Errorf("cleaning up: %v", err)
			}
		}
	})
	return c
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (c *testCluster) path(name string) string { return filepath.Join(c.dir, name) }

func (c *testCluster) write(name, content string) {
	c.Helper()
	apiserver.NoError(c, os.WriteFile(c.path(name), []byte(content), 0o600))
}

// allowNodes writes an inventory of nodes that may join now. NODE:N sets the count.
func (c *testCluster) allowNodes(nodes ...string) {
	c.Helper()
	text, from, to := "version: 1\nnodes:\n", time.Now().Add(-time.Minute).UTC(), time.Now().Add(time.Hour).UTC()
	for i, node := range nodes {
		name, count, _ := strings.Cut(node+":1", ":")
		text += fmt.Sprintf("- name: %s\n  addresses: [192.0.2.%d]\n  count: %s\n  window: {notBefore: %s, notAfter: %s}\n",
			name, i+1, count[:1], from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	c.write("nodes.yaml", text)
}

func (c *testCluster) clientFor(user string, groups ...string) client.Client {
	c.Helper()
	if !c.users[user] {
		c.users[user] = true
		c.server.Grant(c, user, rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"}})
	}
	config := c.server.Config(c, "impersonator", "system:masters")
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return must(client.New(config, client.Options{Scheme: c.server.Scheme()}))
}

func (c *testCluster) requestClient(node string) string {
	c.Helper()
	return c.createRequest(bootstrapper, bootstrapperGroups, newRequest(clientSigner, certificatesv1.UsageClientAuth, node))
}

func (c *testCluster) requestServing(node string, names ...string) string {
	c.Helper()
	return c.createRequest("system:node:"+node, []string{"system:nodes"}, newRequest(servingSigner, certificatesv1.UsageServerAuth, node, names...))
}

func (c *testCluster) createRequest(user string, groups []string, r *certificatesv1.CertificateSigningRequest) string {
	c.Helper()
	apiserver.NoError(c, c.clientFor(user, groups...).Create(c.Context(), r))
	return r.Name
}

func newRequest(signer string, usage certificatesv1.KeyUsage, node string, names ...string) *certificatesv1.CertificateSigningRequest {
	dns, ips := split(names)
	subject := nodeSubject(node)
	r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"}}
	r.Spec.SignerName, r.Spec.Request = signer, must(cert.MakeCSR(newKey(), &subject, dns, ips))
	r.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage}
	return r
}

func (c *testCluster) createNode(node string) {
	c.Helper()
	apiserver.NoError(c, c.admin.Create(c.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}))
}

func (c *testCluster) get(name string) *certificatesv1.CertificateSigningRequest {
	c.Helper()
	r := &certificatesv1.CertificateSigningRequest{}
	apiserver.NoError(c, c.admin.Get(c.Context(), client.ObjectKey{Name: name}, r))
	return r
}

func (c *testCluster) approvalOf(name string) string {
	c.Helper()
	conditions := c.get(name).Status.Conditions
	if len(conditions) == 0 {
		return ""
	}
	return string(conditions[0].Type) + " " + conditions[0].Reason
}

// checkApproved checks that the tool has approved the requests, or that they are undecided.
func (c *testCluster) checkApproved(want bool, names ...string) {
	c.Helper()
	for _, name := range names {
		if got := c.approvalOf(name); (got == approvedByTool) != want || (!want && got != "") {
			c.Errorf("%s has the condition %q, want approved: %t", name, got, want)
		}
	}
}

func (c *testCluster) waitUntilApproved(name string) {
	c.Helper()
	apiserver.Eventually(c, name+" is approved", func() error {
		if got := c.approvalOf(name); got != approvedByTool {
			return fmt.Errorf("its condition is %q", got)
		}
		return nil
	})
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

func newKey() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

func nodeSubject(node string) pkix.Name {
	return pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}
}

type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newAuthority() authority {
	key := newKey()
	return authority{must(cert.NewSelfSignedCACert(cert.Config{CommonName: "kubelet-signer"}, key)), key}
}

func (a authority) serving(node string, names ...string) *x509.Certificate {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: nodeSubject(node), NotBefore: a.certificate.NotBefore, NotAfter: a.certificate.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	template.DNSNames, template.IPAddresses = split(names)
	return must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, a.certificate, newKey().Public(), a.key))))
}

func (c *testCluster) presentCertificate(node string, by authority, names ...string) {
	certificate := by.serving(node, names...)
	c.kubelets[node] = func(context.Context) ([]*x509.Certificate, error) { return []*x509.Certificate{certificate}, nil }
}

func hang(ctx context.Context) ([]*x509.Certificate, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (c *testCluster) run(ctx context.Context, stdout, stderr io.Writer, args ...string) int {
	c.Helper()
	return approve.Run(ctx, append(c.args(), args...), stdout, stderr, approve.Connections{
		Wrap: c.crashInjector.Wrap, PageSize: c.pageSize,
		ServingCertificate: func(ctx context.Context, node *corev1.Node) ([]*x509.Certificate, error) {
			answer, ok := c.kubelets[node.Name]
			if !ok {
				return nil, errNoAnswer
			}
			return answer(ctx)
		},
	})
}

func (c *testCluster) args() []string {
	return []string{"--kubeconfig=" + c.kubeconfig, "--inventory=" + c.path("nodes.yaml"), "--kubelet-ca=" + c.path("ca.pem")}
}

func (c *testCluster) runOnce(args ...string) (code int, stdout, stderr string) {
	c.Helper()
	var out, messages bytes.Buffer
	code = c.run(c.Context(), &out, &messages, append([]string{"--once"}, args...)...)
	return code, out.String(), messages.String()
}

func (c *testCluster) runWatch(during func(), args ...string) (stdout, stderr string) {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	var out, messages bytes.Buffer
	ended := make(chan int, 1)
	go func() { ended <- c.run(ctx, &out, &messages, append([]string{"--watch"}, args...)...) }()
	during()
	cancel()
	if code := <-ended; code != 0 {
		c.Errorf("exit code %d after it was stopped: %s", code, &messages)
	}
	return out.String(), messages.String()
}
