// SPDX-License-Identifier: Apache-2.0

package modules

import (
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
	"regexp"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/joining"
	"github.com/solonode/sno/testcluster/embedded"
)

const (
	floodRequests, floodNodes = 10_000, 2_000
	// floodDelay is far below the 17 minutes that a request behind the flood waits: 6,667 requests need an answer of a
	// kubelet that hangs, a call times out after 5 s, and 32 run in parallel. `make bench` measures the delay.
	floodDelay  = time.Minute
	floodMemory = 64 << 20
)

// The cluster has the real controllers that sign certificates. Package joining simulates its kubelets.
var _ = Describe("The outside tool of the approver", func() {
	var (
		c            *embedded.Cluster
		bootstrapper *kubernetes.Clientset
		tool         *joining.Tool
		kubelet      *joining.Kubelet
		at           net.IP
	)
	BeforeEach(func(ctx SpecContext) {
		outliving, started := steps.Outliving(ctx)
		var err error
		c, err = embedded.Start(outliving, embedded.Config{Progress: GinkgoWriter, Keep: suite.Keep()})
		started()
		Expect(err).NotTo(HaveOccurred())
		steps.UntilEnd(c, func() { _ = c.Stop() })
		// Simulated kubelets would write the status of the nodes.
		for _, name := range []string{embedded.Kubelets, embedded.Scheduler} {
			Expect(c.Component(name).Kill()).To(Succeed())
		}
		Expect(framework.PrepareJoining(ctx, c)).To(Succeed())
		bootstrapper, tool, at = joining.Bootstrapper(ctx, c), joining.NewTool(outliving, c), joining.Address()
		kubelet = joining.StartKubelet(at)
	})

	// once runs the tool once and compares outcomes of requests.
	once := func(ctx SpecContext, want map[string]string) {
		GinkgoHelper()
		code, results, err := tool.RunOnce(ctx)
		Expect(err).NotTo(HaveOccurred())
		for name, outcome := range want {
			Expect(results[name].Outcome+" "+results[name].Reason).To(Equal(outcome), name)
		}
		pending := false
		for _, s := range results {
			pending = pending || s.Outcome == "pending"
		}
		Expect(code == 1).To(Equal(pending), "exit code %d", code)
	}
	isPending := func(ctx SpecContext, requests ...joining.Request) {
		GinkgoHelper()
		for _, r := range requests {
			live := suite.Must(c.Clientset().CertificatesV1().CertificateSigningRequests().Get(ctx, r.Name, metav1.GetOptions{}))
			Expect(live.Status).To(Equal(certificatesv1.CertificateSigningRequestStatus{}), "%s is not decided", r.Name)
		}
	}
	// reached checks that the kubelet's certificate is valid for its name and address.
	reached := func(ctx SpecContext) {
		GinkgoHelper()
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(c.RESTConfig().CAData)
		for _, name := range []string{"worker-1", at.String()} {
			conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: name}}).DialContext(ctx, "tcp", kubelet.Endpoint())
			Expect(err).NotTo(HaveOccurred(), "the kubelet is verified as %s", name)
			_ = conn.Close()
		}
	}

	It("follows a node from its first request to the renewal, and leaves hostile requests pending", Label(suite.Smoke), func(ctx SpecContext) {
		tool.WriteInventory(joining.InventoryEntry{Name: "worker-1", Addresses: []string{at.String()}, Window: joining.OpenWindow()})

		By("It joins. Another client with the bootstrapper's token requests certificates of another node and of a cluster administrator")
		joins := joining.RequestClientCertificate(ctx, bootstrapper, "worker-1")
		unknown := joining.RequestClientCertificate(ctx, bootstrapper, "worker-2")
		admin := joining.Subject("worker-1")
		admin.Organization = append(admin.Organization, "system:masters")
		masters := joining.CreateRequest(ctx, bootstrapper, certificatesv1.KubeAPIServerClientKubeletSignerName, x509.CertificateRequest{Subject: admin})
		once(ctx, map[string]string{
			joins.Name: "approved ProvenByInventory", unknown.Name: "pending NotInInventory", masters.Name: "pending SubjectWrong",
		})
		node := joins.Connect(ctx, c)
		review := suite.Must(node.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))
		Expect(review.Status.UserInfo.Username).To(Equal("system:node:worker-1"))
		isPending(ctx, unknown, masters)

		By("It registers with its certificate, and requests its serving certificate")
		suite.Must(node.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}, Status: kubelet.Status()}, metav1.CreateOptions{}))
		serve := func(kube *kubernetes.Clientset, names ...string) joining.Request {
			GinkgoHelper()
			return joining.RequestServingCertificate(ctx, kube, "worker-1", names, at)
		}
		serves := serve(node, "worker-1")
		registry := serve(node, "worker-1", "registry.sno.example.com")
		forged := serve(bootstrapper, "worker-1")
		again := joining.RequestClientCertificate(ctx, bootstrapper, "worker-1")
		once(ctx, map[string]string{
			serves.Name: "approved ProvenByInventory", registry.Name: "pending KubeletUnreachable", forged.Name: "pending RequestorWrong",
			again.Name: "pending NodeExists",
		})
		isPending(ctx, registry, forged, again)
		certificate := serves.Certificate(ctx)
		kubelet.SetCertificate(certificate)
		reached(ctx)

		By("It renews without an inventory, with only its serving certificate as a proof")
		tool.WriteInventory(joining.InventoryEntry{Name: "another-node"})
		renewal := serve(node, "worker-1")
		calls := kubelet.Called()
		kubelet.SetCertificate(selfSigned(at))
		once(ctx, map[string]string{renewal.Name: "pending NamesNotProven"})
		kubelet.RefuseConnections()
		once(ctx, map[string]string{renewal.Name: "pending KubeletUnreachable"})
		kubelet.Hang()
		started := time.Now()
		once(ctx, map[string]string{renewal.Name: "pending KubeletUnreachable"})
		Expect(time.Since(started)).To(BeNumerically("<=", 20*time.Second), "a kubelet that hangs does not block the tool")
		isPending(ctx, renewal, registry)
		Expect(kubelet.Called()).NotTo(Equal(calls), "the kubelet was called")
		kubelet.SetCertificate(certificate)
		once(ctx, map[string]string{renewal.Name: "approved ProvenByCertificate", registry.Name: "pending NamesNotProven"})
		renewed := renewal.Certificate(ctx)
		kubelet.SetCertificate(renewed)
		reached(ctx)
		isPending(ctx, unknown, masters, registry, forged, again)

		By("The tool has written nothing but approvals")
		events, _, err := c.AuditEvents(ctx, 0, embedded.AuditFilter{User: joining.ToolUser, WritesOnly: true})
		Expect(err).NotTo(HaveOccurred())
		Expect(events).To(HaveLen(3))
		for _, event := range events {
			Expect(event.ObjectRef.Resource+"/"+event.ObjectRef.Subresource).To(Equal("certificatesigningrequests/approval"), event.RequestURI)
		}
	})

	It("approves a legitimate request while 10,000 are pending that must not be approved, of 2,000 nodes whose kubelets hang", Label(suite.Long), func(ctx SpecContext) {
		Expect(c.Component(embedded.ControllerManager).Kill()).To(Succeed()) // it would taint the nodes
		kubelet.Hang()
		joining.CreateNodes(ctx, c, floodNodes, kubelet)
		joining.CreateRequests(ctx, c, floodRequests)
		tool.WriteInventory(joining.InventoryEntry{Name: "worker-1", Window: joining.OpenWindow()}, joining.InventoryEntry{Name: "worker-2", Window: joining.OpenWindow()})
		running := tool.Start(ctx)
		for _, name := range []string{"worker-1", "worker-2"} { // at the start, and later
			joins := joining.RequestClientCertificate(ctx, bootstrapper, name)
			Eventually(ctx, func(ctx context.Context) (*certificatesv1.CertificateSigningRequest, error) {
				return c.Clientset().CertificatesV1().CertificateSigningRequests().Get(ctx, joins.Name, metav1.GetOptions{})
			}).WithTimeout(floodDelay).Should(HaveField("Status.Conditions", Not(BeEmpty())), "the request of %s waits for kubelets that hang", name)
		}
		status := suite.Must(os.ReadFile(fmt.Sprintf("/proc/%d/status", running.PID())))
		peak := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(status)
		Expect(peak).NotTo(BeNil(), "the kernel reports the largest memory")
		Expect(strconv.Atoi(string(peak[1]))).To(BeNumerically("<", floodMemory>>10), "kilobytes")
		list := suite.Must(c.Clientset().CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{}))
		Expect(list.Items).To(HaveLen(floodRequests + 2))
		decided := 0
		for i := range list.Items {
			if len(list.Items[i].Status.Conditions) > 0 {
				decided++
			}
		}
		Expect(decided).To(Equal(2))
	})
})

// selfSigned returns a certificate with the right names and without a CA.
func selfSigned(at net.IP) tls.Certificate {
	GinkgoHelper()
	key := suite.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: joining.Subject("worker-1"), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"worker-1"}, IPAddresses: []net.IP{at}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der := suite.Must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// The real Deployment controller creates the stock approver's pods.
var _ = It("The approver's controller turns the stock approver's flow off, in part or as a whole, and restores it when the topology grows", Label(suite.Smoke), func(ctx SpecContext) {
	c := steps.Start(ctx, framework.Config{Scenario: "none-sno", VersionOperator: true})
	for _, mode := range []string{"node-client-off", "off"} {
		c.RunAll(map[framework.Module]string{framework.Approver: asExpected}, "--mode="+mode, "--kubelets-every=0")
		stockPods(c, map[string]int{"node-client-off": 1, "off": 0}[mode])
		c.Quiet()
		Expect(c.SetTopology(ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode)).To(Succeed())
		c.Expect(map[framework.Module]string{framework.Approver: notNeeded})
		stockPods(c, 1)
		c.Quiet()
		maps := &corev1.ConfigMapList{}
		Expect(c.Kube.List(ctx, maps, client.InNamespace(framework.StockApproverNamespace), client.MatchingFields{"metadata.name": "machine-approver-config"})).To(Succeed())
		Expect(maps.Items).To(BeEmpty())
		Expect(version(c).Spec.Overrides).To(BeEmpty())
		Expect(c.SetTopology(ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode)).To(Succeed())
		c.Expect(map[framework.Module]string{framework.Approver: asExpected})
	}
})

// stockPods waits until exactly so many pods of the stock approver exist and run, as its Deployment has them.
func stockPods(c *steps.Cluster, want int) {
	GinkgoHelper()
	Eventually(c.Ctx, func(g Gomega) {
		d, pods := &appsv1.Deployment{}, &corev1.PodList{}
		g.Expect(c.Kube.Get(c.Ctx, client.ObjectKey{Namespace: framework.StockApproverNamespace, Name: framework.StockApprover}, d)).To(Succeed())
		g.Expect(c.Kube.List(c.Ctx, pods, client.InNamespace(framework.StockApproverNamespace))).To(Succeed())
		g.Expect(pods.Items).To(HaveLen(want))
		g.Expect(d.Status).To(And(HaveField("ObservedGeneration", d.Generation), HaveField("UpdatedReplicas", BeEquivalentTo(want))))
		for _, pod := range pods.Items {
			g.Expect(pod.DeletionTimestamp).To(BeNil())
			g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
		}
	}).Should(Succeed())
}
