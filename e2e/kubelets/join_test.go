// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/joining"
)

// Both signers, as requests name them.
const (
	clientSigner  = certificatesv1.KubeAPIServerClientKubeletSignerName
	servingSigner = certificatesv1.KubeletServingSignerName
)

const (
	hello       = "hello from a node that has joined"
	joinBound   = time.Minute
	witnessNode = "witness"
	kubeletPort = "10250"
	// A kubelet renews its certificate at nine tenths of the validity at the latest.
	agedSince, agedUntil = -time.Hour, 5 * time.Minute

	// joinScript joins as kind does, but with the spec's token, and with a kubelet that requests its serving certificate.
	joinScript = `set -e
mkdir -p /kind/sno-join
echo 'serverTLSBootstrap: true' >/kind/sno-join/kubeletconfiguration+merge.yaml
sed -e "s/token: .*/token: $1/" -e '/^kind: JoinConfiguration/a patches:\n  directory: /kind/sno-join' /kind/kubeadm.conf >/kind/sno-join.conf
exec timeout 100 kubeadm join --config=/kind/sno-join.conf`
	replaceScript = `set -e
systemctl stop kubelet
cat >/var/lib/kubelet/pki/kubelet-server-aged.pem
ln --symbolic --force kubelet-server-aged.pem /var/lib/kubelet/pki/kubelet-server-current.pem
systemctl start kubelet`
)

var _ = Describe("A node (R-APP-1, R-APP-2, R-APP-3, R-APP-4)", func() {
	It("joins, serves and renews with approvals of the outside tool only, and hostile requests stay pending", NodeTimeout(25*time.Minute), func(ctx SpecContext) {
		j := newJoiner(ctx, cluster(ctx))
		j.withdrawAutomatic(ctx)
		j.leave(ctx)

		By("The node joins")
		took := j.join(ctx)

		By("The kubelet serves")
		pod := scriptPod(newNamespace(ctx, j.Env), "hello", "echo "+hello+"; exec sleep infinity", 0)
		pod.Spec.NodeName = j.node
		request := j.waitForRequest(ctx, servingSigner)
		running(ctx, j.Env, pod)
		_, err := podLog(ctx, j.Env, pod)
		Expect(err).To(MatchError(ContainSubstring("tls")), "reading a log before the approval of the kubelet's certificate")
		j.onlyTool(ctx, request)
		second, err := joining.RequestClientCertificate(ctx, j.attacker, j.node)
		Expect(err).NotTo(HaveOccurred())
		foreign, err := joining.RequestServingCertificate(ctx, j.itself(ctx), j.node, []string{j.node}, net.ParseIP(j.address), net.IPv4(192, 0, 2, 1))
		Expect(err).NotTo(HaveOccurred())
		// Its outcome depends on whether the kubelet has a certificate in use yet.
		j.hostile = append(j.hostile, foreign.Name)
		j.approve(ctx, request, "approved ProvenByInventory", map[string]string{second.Name: "pending NodeExists"})
		j.serves(ctx, pod, nil)
		// The kubelet's certificate does not prove the other address.
		j.expectOutcomes(ctx, map[string]string{foreign.Name: "pending NamesNotProven"})

		By("The kubelet renews its certificate, while the inventory no longer has the node")
		Expect(j.tool.WriteInventory(joining.Entry{Name: "another-node"})).To(Succeed())
		aged := j.age(ctx)
		request = j.waitForRequest(ctx, servingSigner)
		j.serves(ctx, pod, nil)
		j.approve(ctx, request, "approved ProvenByCertificate", nil)
		j.serves(ctx, pod, aged)

		for _, name := range j.hostile {
			j.pending(ctx, name)
		}
		record(within("A real kubelet joins, from kubeadm join to Ready, approved by the outside tool", took, joinBound), suite.Row{
			What:     "Requests of a node that joined and renewed, and hostile requests next to them",
			Measured: fmt.Sprintf("%d approved, %d left pending", len(j.approved), len(j.hostile)), Bound: "no hostile one", Compared: "-", Held: true,
		})
	})
})

// joiner is a worker that leaves the cluster and joins again.
type joiner struct {
	*Env
	before        *corev1.Node
	node, address string
	// authority is a file with the CA of kubelets.
	authority string
	tool      *joining.Tool
	// token is the node's bootstrap token, which the attacker has as well.
	token    string
	attacker *kubernetes.Clientset
	// known are earlier requests; approved are those of the node that the tool has approved, hostile those that it must not.
	known, approved, hostile []string
}

func newJoiner(ctx context.Context, e *Env) *joiner {
	GinkgoHelper()
	worker := lastWorker(ctx, e)
	j := &joiner{Env: e, before: worker, node: worker.Name, authority: filepath.Join(e.Cluster.Dir(), "kubelet-ca.pem")}
	var err error
	j.address, err = e.Kind.Address(ctx, j.node)
	Expect(err).NotTo(HaveOccurred())
	// kubeadm has one CA for everything.
	Expect(os.WriteFile(j.authority, e.Cluster.RESTConfig().CAData, 0o600)).To(Succeed())
	j.tool, err = joining.NewTool(ctx, e.Cluster, e.Progress)
	Expect(err).NotTo(HaveOccurred())
	for _, request := range j.list(ctx) {
		j.known = append(j.known, request.Name)
	}
	DeferCleanup(func(ctx SpecContext) {
		for _, request := range j.list(ctx) {
			if slices.Contains(j.hostile, request.Name) || subjectOf(&request) == joining.Subject(witnessNode).CommonName {
				Expect(j.requests().Delete(ctx, request.Name, metav1.DeleteOptions{})).To(Succeed())
			}
		}
	})
	Expect(j.tool.WriteInventory(joining.Entry{Name: j.node, Addresses: []string{j.address}, Window: joining.OpenWindow()})).To(Succeed())
	j.token = j.onControlPlane(ctx, "kubeadm", "token", "create", "--ttl=10m")
	DeferCleanup(func(ctx SpecContext) { j.onControlPlane(ctx, "kubeadm", "token", "delete", j.token) })
	j.attacker = j.clientWith(rest.Config{BearerToken: j.token})
	return j
}

// withdrawAutomatic removes, until the end of the spec, kubeadm's bindings by which kube-controller-manager approves
// client certificates of nodes unconditionally.
func (j *joiner) withdrawAutomatic(ctx context.Context) {
	GinkgoHelper()
	for _, name := range []string{"kubeadm:node-autoapprove-bootstrap", "kubeadm:node-autoapprove-certificate-rotation"} {
		live := &rbacv1.ClusterRoleBinding{}
		err := j.Cluster.Client().Get(ctx, client.ObjectKey{Name: name}, live)
		if apierrors.IsNotFound(err) {
			continue
		}
		Expect(err).NotTo(HaveOccurred())
		again := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: live.RoleRef, Subjects: live.Subjects}
		Expect(j.Cluster.Client().Delete(ctx, live)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) error { return j.Cluster.Client().Create(ctx, again) })
	}
}

// leave removes the node, and the requests by which it joined before: those of the last hour would count for the tool's
// limit.
func (j *joiner) leave(ctx context.Context) {
	GinkgoHelper()
	onNode(ctx, j.Kind, j.node, "kubeadm", "reset", "--force")
	Expect(j.Kind.Clientset().CoreV1().Nodes().Delete(ctx, j.node, metav1.DeleteOptions{})).To(Succeed())
	for _, name := range newRequests(j.list(ctx), clientSigner, j.node, nil) {
		Expect(j.requests().Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	}
}

// join joins the node, and returns how long that took. The node's request waits for the tool's approval, and a hostile
// one stays pending.
func (j *joiner) join(ctx context.Context) time.Duration {
	GinkgoHelper()
	began, joined := time.Now(), make(chan error, 1)
	running, cancel := context.WithCancel(ctx)
	go func() {
		_, err := j.Kind.Exec(running, j.node, "sh", "-c", joinScript, "sh", j.token)
		joined <- err
	}()
	// The rest of kubeadm join is not needed.
	defer func() { cancel(); GinkgoWriter.Println("kubeadm join ended with:", <-joined) }()
	request := j.waitForRequest(ctx, clientSigner)
	j.onlyTool(ctx, request)
	unknown, err := joining.RequestClientCertificate(ctx, j.attacker, "unknown")
	Expect(err).NotTo(HaveOccurred())
	j.approve(ctx, request, "approved ProvenByInventory", map[string]string{unknown.Name: "pending NotInInventory"})
	Expect(j.Kind.WaitForNodes(ctx, j.node)).To(Succeed())
	took := time.Since(began)

	roles := map[string]string{}
	for label, value := range j.before.Labels {
		if strings.HasPrefix(label, rolePrefix) {
			roles[label] = value
		}
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": roles}})
	Expect(err).NotTo(HaveOccurred())
	_, err = j.Kind.Clientset().CoreV1().Nodes().Patch(ctx, j.node, types.MergePatchType, body, metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
	return took
}

// approve runs the tool and expects this outcome for the node's request, and these for hostile ones.
func (j *joiner) approve(ctx context.Context, request, outcome string, hostile map[string]string) {
	GinkgoHelper()
	want := map[string]string{request: outcome}
	for name, outcome := range hostile {
		want[name] = outcome
		j.hostile = append(j.hostile, name)
	}
	j.expectOutcomes(ctx, want)
	j.approved = append(j.approved, request)
}

func (j *joiner) expectOutcomes(ctx context.Context, want map[string]string) {
	GinkgoHelper()
	_, results, err := j.tool.RunOnce(ctx, "--bootstrap-tokens", "--kubelet-ca="+j.authority)
	Expect(err).NotTo(HaveOccurred())
	for name, outcome := range want {
		Expect(results).To(HaveKey(name))
		Expect(results[name].Outcome+" "+results[name].Reason).To(Equal(outcome), "the outcome of %s", name)
	}
}

// onlyTool checks that the request stays pending although the cluster's own approver has processed later ones: that of
// an administrator, who may approve such requests, is approved.
func (j *joiner) onlyTool(ctx context.Context, request string) {
	GinkgoHelper()
	witness, err := joining.RequestClientCertificate(ctx, j.clientWith(*j.Cluster.RESTConfig()), witnessNode)
	Expect(err).NotTo(HaveOccurred())
	signing, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	_, err = witness.Certificate(signing)
	Expect(err).NotTo(HaveOccurred())
	j.pending(ctx, request)
}

func (j *joiner) pending(ctx context.Context, name string) {
	GinkgoHelper()
	request, err := j.requests().Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(request.Status.Conditions).To(BeEmpty(), "%s of %s was decided", request.Spec.SignerName, request.Spec.Username)
	Expect(request.Status.Certificate).To(BeEmpty())
}

func (j *joiner) requests() typed.CertificateSigningRequestInterface {
	return j.Kind.Clientset().CertificatesV1().CertificateSigningRequests()
}

func (j *joiner) list(ctx context.Context) []certificatesv1.CertificateSigningRequest {
	GinkgoHelper()
	all, err := j.requests().List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	return all.Items
}

// waitForRequest returns the node's only new request.
func (j *joiner) waitForRequest(ctx context.Context, signer string) string {
	GinkgoHelper()
	var names []string
	Eventually(ctx, func(ctx context.Context) []string {
		names = newRequests(j.list(ctx), signer, j.node, slices.Concat(j.known, j.hostile))
		return names
	}).Should(HaveLen(1), "new requests of the node for %s", signer)
	j.known = append(j.known, names...)
	return names[0]
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

func (j *joiner) clientWith(credentials rest.Config) *kubernetes.Clientset {
	GinkgoHelper()
	admin := j.Cluster.RESTConfig()
	credentials.Host, credentials.CAData, credentials.QPS = admin.Host, admin.CAData, admin.QPS
	kube, err := kubernetes.NewForConfig(&credentials)
	Expect(err).NotTo(HaveOccurred())
	return kube
}

// itself returns a client with the node's own certificate, like an attacker on the node.
func (j *joiner) itself(ctx context.Context) *kubernetes.Clientset {
	GinkgoHelper()
	pair := []byte(onNode(ctx, j.Kind, j.node, "cat", "/var/lib/kubelet/pki/kubelet-client-current.pem") + "\n")
	return j.clientWith(rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: pair, KeyData: pair}})
}

func (j *joiner) onControlPlane(ctx context.Context, command ...string) string {
	GinkgoHelper()
	return onNode(ctx, j.Kind, nodes(j.Env)[0], append([]string{"env", "KUBECONFIG=/etc/kubernetes/admin.conf"}, command...)...)
}

// serves waits until the kubelet serves with a valid certificate for its name and address, other than the old one, and
// reads the pod's log through the API server.
func (j *joiner) serves(ctx context.Context, pod *corev1.Pod, old *x509.Certificate) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		current, err := j.servingCertificate(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(old != nil && current.Equal(old)).To(BeFalse(), "it still uses the former certificate")
		g.Expect(current.VerifyHostname(j.address)).To(Succeed())
	}).Should(Succeed())
	// A kubelet that has just started may not have its pods yet.
	Eventually(ctx, podLog).WithArguments(j.Env, pod).Should(Equal(hello))
}

// servingCertificate returns the kubelet's serving certificate, verified for the node's name.
func (j *joiner) servingCertificate(ctx context.Context) (*x509.Certificate, error) {
	roots, err := cert.NewPool(j.authority)
	if err != nil {
		return nil, err
	}
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: j.node, MinVersion: tls.VersionTLS12}}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(j.address, kubeletPort))
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// age replaces the kubelet's certificate by an equal one that has nearly expired, and returns it.
func (j *joiner) age(ctx context.Context) *x509.Certificate {
	GinkgoHelper()
	current, err := j.servingCertificate(ctx)
	Expect(err).NotTo(HaveOccurred())
	authority, err := cert.CertsFromFile(j.authority)
	Expect(err).NotTo(HaveOccurred())
	key, err := keyutil.ParsePrivateKeyPEM([]byte(j.onControlPlane(ctx, "cat", "/etc/kubernetes/pki/ca.key") + "\n"))
	Expect(err).NotTo(HaveOccurred())
	aged, file, err := age(current, authority[0], key)
	Expect(err).NotTo(HaveOccurred())
	_, err = j.Kind.Engine().Pipe(ctx, bytes.NewReader(file), "exec", "--interactive", j.node, "sh", "-c", replaceScript)
	Expect(err).NotTo(HaveOccurred())
	return aged
}

// age makes a certificate for the same names, with a new key, that has nearly expired, and the kubelet's file with
// both.
func age(current, authority *x509.Certificate, signer crypto.PrivateKey) (*x509.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: current.Subject, DNSNames: current.DNSNames, IPAddresses: current.IPAddresses,
		NotBefore: time.Now().Add(agedSince), NotAfter: time.Now().Add(agedUntil), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	aged, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	secret, err := keyutil.MarshalPrivateKeyToPEM(key)
	return aged, append(pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), secret...), err
}

func TestNewRequests(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request := func(name, signer, node string) certificatesv1.CertificateSigningRequest {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: joining.Subject(node)}, key)
		if err != nil {
			t.Fatal(err)
		}
		return certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: signer, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		}}
	}
	broken := request("broken", clientSigner, "worker")
	broken.Spec.Request = []byte("none")
	decided := request("decided", clientSigner, "worker")
	decided.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
	all := []certificatesv1.CertificateSigningRequest{
		request("known", clientSigner, "worker"), request("own", clientSigner, "worker"), request("serving", servingSigner, "worker"),
		request("other", clientSigner, "worker2"), broken, decided,
	}
	// A request that was approved too early must be reported, so decided ones count.
	if diff := cmp.Diff([]string{"own", "decided"}, newRequests(all, clientSigner, "worker", []string{"known"})); diff != "" {
		t.Error(diff)
	}
}

// A kubelet renews at a random time after seven to nine tenths of the validity.
func TestAge(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "kubernetes"}, key)
	if err != nil {
		t.Fatal(err)
	}
	current := &x509.Certificate{Subject: joining.Subject("worker"), DNSNames: []string{"worker"}, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 7)}}
	aged, file, err := age(current, authority, key)
	if err != nil {
		t.Fatal(err)
	}
	whole := aged.NotAfter.Sub(aged.NotBefore)
	if latest := aged.NotBefore.Add(whole * 9 / 10); latest.After(time.Now()) || aged.NotAfter.Before(time.Now()) {
		t.Errorf("a kubelet may renew it only in %s", time.Until(latest))
	}
	if pair, err := tls.X509KeyPair(file, file); err != nil || !pair.Leaf.Equal(aged) {
		t.Errorf("the kubelet's file: %v", err)
	}
}
