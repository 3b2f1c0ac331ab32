// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/joining"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/operand"
)

// certified is a cluster with the controllers that sign certificates. Package joining simulates its kubelets.
type certified struct {
	*embedded.Cluster
	t            *testing.T
	ctx          context.Context //nolint:containedctx // of the test
	bootstrapper *kubernetes.Clientset
	tool         *joining.Tool
}

func startCertified(t *testing.T) *certified {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	t.Cleanup(cancel)
	cluster, err := embedded.Start(ctx, embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop() })
	c := &certified{Cluster: cluster, t: t, ctx: ctx}
	// Simulated kubelets would write the status of the nodes.
	for _, name := range []string{embedded.Kubelets, embedded.Scheduler} {
		c.must(cluster.Component(name).Kill())
	}
	c.must(joining.Prepare(ctx, cluster))
	c.bootstrapper, err = joining.Bootstrapper(ctx, cluster)
	c.must(err)
	c.tool, err = joining.NewTool(ctx, cluster, os.Stderr)
	c.must(err)
	return c
}

func (c *certified) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *certified) kubelet() (net.IP, *joining.Kubelet) {
	c.t.Helper()
	at, err := joining.Address()
	c.must(err)
	kubelet, err := joining.StartKubelet(at)
	c.must(err)
	c.t.Cleanup(kubelet.Stop)
	return at, kubelet
}

func (c *certified) once(want map[string]string, args ...string) {
	c.t.Helper()
	code, results, err := c.tool.RunOnce(c.ctx, args...)
	c.must(err)
	pending := false
	for name, outcome := range want {
		if got := results[name].Outcome + " " + results[name].Reason; got != outcome {
			c.t.Errorf("%s: %s, want %s", name, got, outcome)
		}
	}
	for _, s := range results {
		pending = pending || s.Outcome == "pending"
	}
	if (code == 1) != pending {
		c.t.Errorf("exit code %d, pending: %t", code, pending)
	}
}

func (c *certified) isPending(requests ...joining.Request) {
	c.t.Helper()
	for _, r := range requests {
		live, err := c.Clientset().CertificatesV1().CertificateSigningRequests().Get(c.ctx, r.Name, metav1.GetOptions{})
		c.must(err)
		if len(live.Status.Conditions) > 0 || len(live.Status.Certificate) > 0 {
			c.t.Errorf("%s has been decided: %v", r.Name, live.Status.Conditions)
		}
	}
}

// TestNodeJoins follows a node from its first request to the renewal of its serving certificate, with real signers, and
// hostile requests at each step.
func TestNodeJoins(t *testing.T) {
	t.Parallel()
	c := startCertified(t)
	at, kubelet := c.kubelet()
	c.must(c.tool.WriteInventory(joining.Entry{Name: "worker-1", Addresses: []string{at.String()}, Window: joining.OpenWindow()}))

	// It joins. Another client with the bootstrapper's token requests certificates of another node and of a cluster
	// administrator.
	joins, err := joining.RequestClientCertificate(c.ctx, c.bootstrapper, "worker-1")
	c.must(err)
	unknown, err := joining.RequestClientCertificate(c.ctx, c.bootstrapper, "worker-2")
	c.must(err)
	admin := joining.Subject("worker-1")
	admin.Organization = append(admin.Organization, "system:masters")
	masters, err := joining.CreateRequest(c.ctx, c.bootstrapper, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth, x509.CertificateRequest{Subject: admin})
	c.must(err)
	c.once(map[string]string{
		joins.Name: "approved ProvenByInventory", unknown.Name: "pending NotInInventory", masters.Name: "pending SubjectWrong",
	})
	node, err := joins.Connect(c.ctx, c.Cluster)
	c.must(err)
	c.is(node, "system:node:worker-1")
	c.isPending(unknown, masters)

	// It registers with its certificate, and requests its serving certificate.
	_, err = node.CoreV1().Nodes().Create(c.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}, Status: kubelet.Status()}, metav1.CreateOptions{})
	c.must(err)
	serve := func(kube *kubernetes.Clientset, names ...string) joining.Request {
		r, err := joining.RequestServingCertificate(c.ctx, kube, "worker-1", names, at)
		c.must(err)
		return r
	}
	serves := serve(node, "worker-1")
	registry := serve(node, "worker-1", "registry.sno.example.com")
	forged := serve(c.bootstrapper, "worker-1")
	again, err := joining.RequestClientCertificate(c.ctx, c.bootstrapper, "worker-1")
	c.must(err)
	c.once(map[string]string{
		serves.Name: "approved ProvenByInventory", registry.Name: "pending KubeletUnreachable", forged.Name: "pending RequestorWrong",
		again.Name: "pending NodeExists",
	})
	c.isPending(registry, forged, again)
	certificate, err := serves.Certificate(c.ctx)
	c.must(err)
	kubelet.SetCertificate(certificate)
	c.reached(at, kubelet)

	// It renews without an inventory, with only its serving certificate as a proof.
	c.must(c.tool.WriteInventory(joining.Entry{Name: "another-node"}))
	renewal := serve(node, "worker-1")
	calls := kubelet.Called()
	for name, respond := range map[string]func(){
		"pending NamesNotProven":     func() { kubelet.SetCertificate(c.selfSigned(at)) },
		"pending KubeletUnreachable": kubelet.CloseConnections,
	} {
		respond()
		c.once(map[string]string{renewal.Name: name})
	}
	kubelet.Hang()
	started := time.Now()
	c.once(map[string]string{renewal.Name: "pending KubeletUnreachable"})
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("a kubelet that hangs blocked the tool for %s", took)
	}
	c.isPending(renewal, registry)
	if kubelet.Called() == calls {
		t.Error("the kubelet was never called")
	}
	kubelet.SetCertificate(certificate)
	c.once(map[string]string{renewal.Name: "approved ProvenByCertificate", registry.Name: "pending NamesNotProven"})
	renewed, err := renewal.Certificate(c.ctx)
	c.must(err)
	kubelet.SetCertificate(renewed)
	c.reached(at, kubelet)
	c.isPending(unknown, masters, registry, forged, again)

	// The tool has written nothing but approvals.
	events, _, err := c.AuditEvents(c.ctx, 0, embedded.AuditFilter{User: joining.ToolUser, WritesOnly: true})
	c.must(err)
	for _, event := range events {
		if event.ObjectRef == nil || event.ObjectRef.Resource != "certificatesigningrequests" || event.ObjectRef.Subresource != "approval" {
			t.Errorf("a write other than an approval: %s %s", event.Verb, event.RequestURI)
		}
	}
	if len(events) != 3 {
		t.Errorf("%d writes, want one for each approval", len(events))
	}
}

func (c *certified) is(kube *kubernetes.Clientset, name string) {
	c.t.Helper()
	review, err := kube.AuthenticationV1().SelfSubjectReviews().Create(c.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	c.must(err)
	if review.Status.UserInfo.Username != name {
		c.t.Errorf("authenticated as %q, want %q", review.Status.UserInfo.Username, name)
	}
}

// reached checks that the kubelet's certificate is valid for its name and address.
func (c *certified) reached(at net.IP, kubelet *joining.Kubelet) {
	c.t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.RESTConfig().CAData)
	for _, name := range []string{"worker-1", at.String()} {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: name}}).DialContext(c.ctx, "tcp", kubelet.Endpoint())
		if err != nil {
			c.t.Errorf("the kubelet cannot be verified as %s: %v", name, err)
			continue
		}
		_ = conn.Close()
	}
}

// selfSigned returns a certificate with the right names and without a CA.
func (c *certified) selfSigned(at net.IP) tls.Certificate {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	c.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: joining.Subject("worker-1"), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"worker-1"}, IPAddresses: []net.IP{at}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	c.must(err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

const (
	floodRequests, floodNodes = 10_000, 2_000
	// floodDelay is far below the 17 minutes that a request behind the flood waits: 6,667 requests need an answer of a
	// kubelet that hangs, a call times out after 5 s, and 32 run in parallel. `make bench` measures the delay.
	floodDelay  = time.Minute
	floodMemory = 64 << 20
)

// TestFlood approves a legitimate request while 10,000 requests are pending that must not be approved, on 2,000 nodes
// whose kubelets hang.
func TestFlood(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute; the tool's own tests have a smaller flood")
	}
	t.Parallel()
	c := startCertified(t)
	c.must(c.Component(embedded.ControllerManager).Kill()) // it would taint the nodes
	_, kubelet := c.kubelet()
	kubelet.Hang()
	c.must(joining.CreateNodes(c.ctx, c.Cluster, floodNodes, kubelet))
	c.must(joining.CreateRequests(c.ctx, c.Cluster, floodRequests, floodNodes))
	c.must(c.tool.WriteInventory(joining.Entry{Name: "worker-1", Window: joining.OpenWindow()}, joining.Entry{Name: "worker-2", Window: joining.OpenWindow()}))
	tool, err := c.tool.Start(c.ctx)
	c.must(err)
	for _, name := range []string{"worker-1", "worker-2"} { // at the start, and later
		took, err := joining.TimeToApproval(c.ctx, c.Cluster, name)
		c.must(err)
		t.Logf("the request of %s was approved after %s", name, took)
		if took > floodDelay {
			t.Errorf("the request of %s was approved after %s: it has waited for kubelets that hang", name, took)
		}
	}
	if peak := c.peakMemory(tool.PID()); peak > floodMemory {
		t.Errorf("the tool took %d MiB, want less than %d", peak>>20, int64(floodMemory)>>20)
	}
	list, err := c.Clientset().CertificatesV1().CertificateSigningRequests().List(c.ctx, metav1.ListOptions{})
	c.must(err)
	decided := 0
	for i := range list.Items {
		if len(list.Items[i].Status.Conditions) > 0 {
			decided++
		}
	}
	if decided != 2 || len(list.Items) != floodRequests+2 {
		t.Errorf("%d of %d requests were decided, want 2 of %d", decided, len(list.Items), floodRequests+2)
	}
}

func (c *certified) peakMemory(pid int) int64 {
	c.t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	c.must(err)
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, " kB")), 10, 64)
			c.must(err)
			c.t.Logf("the tool took %.1f MiB at most", float64(kilobytes)/1024)
			return kilobytes << 10
		}
	}
	c.t.Fatal("the kernel does not report it")
	return 0
}

// TestStockApprover runs the controller with a stock approver, whose pods the real Deployment controller creates, in
// both modes and back.
func TestStockApprover(t *testing.T) {
	t.Parallel()
	p := start(t, framework.Config{Scenario: "none-sno", VersionOperator: true})
	for _, mode := range []string{"node-client-off", "off"} {
		p.controllers([]string{"--mode=" + mode, "--kubelets-every=0"}, map[framework.Module]string{framework.Approver: "AsExpected"})
		p.stockPods(map[string]int{"node-client-off": 1, "off": 0}[mode])
		p.quiet()
		p.must(p.SetTopology(p.ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode))
		p.expect(map[framework.Module]string{framework.Approver: "NotNeeded"})
		p.stockPods(1)
		p.quiet()
		maps, err := p.Cluster.Clientset().CoreV1().ConfigMaps(framework.StockApproverNamespace).List(p.ctx, metav1.ListOptions{FieldSelector: "metadata.name=machine-approver-config"})
		p.must(err)
		if len(maps.Items) > 0 || len(p.version().Spec.Overrides) > 0 {
			t.Errorf("%s: not restored: %v, %v", mode, maps.Items, p.version().Spec.Overrides)
		}
		p.must(p.SetTopology(p.ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode))
		p.expect(map[framework.Module]string{framework.Approver: "AsExpected"})
	}
}

// stockPods waits until exactly so many pods of the stock approver exist and run, as its Deployment has them.
func (p *proof) stockPods(want int) {
	p.t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(p.ctx, poll, operand.WaitTimeout, true, func(ctx context.Context) (bool, error) {
		d := &appsv1.Deployment{}
		if err := p.Cluster.Client().Get(ctx, client.ObjectKey{Namespace: framework.StockApproverNamespace, Name: framework.StockApprover}, d); err != nil {
			return false, err
		}
		pods := &corev1.PodList{}
		if err := p.Cluster.Client().List(ctx, pods, client.InNamespace(framework.StockApproverNamespace)); err != nil {
			return false, err
		}
		running := 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning && pods.Items[i].DeletionTimestamp == nil {
				running++
			}
		}
		last = fmt.Sprintf("%d pods, %d of them run; %+v", len(pods.Items), running, d.Status)
		return d.Status.ObservedGeneration == d.Generation && int(d.Status.UpdatedReplicas) == want && running == want && len(pods.Items) == want, nil
	})
	if err != nil {
		p.t.Fatalf("no %d pods of the stock approver: %v: %s", want, err, last)
	}
}
