// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/testcluster/images"
	"github.com/solonode/sno/testcluster/kind"
	"github.com/solonode/sno/topology"
)

const (
	// killEtcd removes a member at once. The kubelet would grant its grace period.
	killEtcd = `mv /etc/kubernetes/manifests/etcd.yaml /etc/kubernetes/etcd.yaml &&
crictl ps --quiet --name '^etcd$' | xargs --no-run-if-empty crictl --timeout=60s stop --timeout 0`
	healEtcd = "mv /etc/kubernetes/etcd.yaml /etc/kubernetes/manifests/etcd.yaml"
	// redirect configures another API server in a kubelet. kubeadm's kubelets use the local one, which only uses the local
	// etcd.
	redirect = `sed --in-place "s,server: .*,server: $1," /etc/kubernetes/kubelet.conf && systemctl restart kubelet`

	apiServerPort = "6443"
	// memberBound is for a kubelet to observe an etcd, by three probes of five seconds, and for an etcd to start, on a busy
	// machine.
	memberBound = waitTimeout
)

var guardImage = FullImageName("guard")

var _ = Describe("The quorum guard of etcd", func() {
	It("allows no eviction of another guard while one of three members is dead, and one when it is back", NodeTimeout(20*time.Minute), func(ctx SpecContext) {
		unlock := lock(ctx, "start")
		c, err := kind.Create(ctx, kind.Config{Name: *clusterName + "-etcd", ControlPlanes: 3, Progress: GinkgoWriter})
		unlock()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(c.Delete)
		g := newGuarded(ctx, c)
		g.install(ctx)
		g.budget(ctx, 3, 1)

		began := time.Now()
		onNode(ctx, c, g.victim, "sh", "-c", killEtcd)
		g.budget(ctx, 2, 0)
		closed := within("A member of three dies: until no guard can be evicted", time.Since(began), memberBound)
		for _, pod := range g.guards(ctx) {
			dead := pod.Spec.NodeName == g.victim
			// The condition Ready is also False for pods of lost nodes; this is the kubelet's result.
			Expect(pod.Status.ContainerStatuses).To(HaveExactElements(HaveField("Ready", !dead)), "the guard on node %s", pod.Spec.NodeName)
			if !dead {
				Expect(g.evict(ctx, pod)).To(Satisfy(apierrors.IsTooManyRequests), "the eviction of a guard beside a dead member")
			}
		}

		began = time.Now()
		onNode(ctx, c, g.victim, "sh", "-c", healEtcd)
		g.budget(ctx, 3, 1)
		opened := within("It comes back: until one guard can be evicted", time.Since(began), memberBound)
		pods := g.guards(ctx)
		Expect(g.evict(ctx, pods[0])).To(Succeed(), "with healthy members")
		Expect(g.evict(ctx, pods[1])).To(Satisfy(apierrors.IsTooManyRequests), "the eviction of a second guard")
		record(closed, opened)
	})
})

// guarded is a cluster of three control-plane nodes with a guard for each etcd.
type guarded struct {
	*kind.Cluster
	nodes []string
	// kube uses the API server of another node than the victim, as does the victim's kubelet.
	kube kubernetes.Interface
	// victim is the node whose etcd is killed. It is not the leader's, so that no election is needed.
	victim string
	host   etcdguard.Host
}

func newGuarded(ctx context.Context, c *kind.Cluster) *guarded {
	GinkgoHelper()
	g := &guarded{Cluster: c}
	g.nodes = suite.Must(c.Nodes())
	lease := suite.Must(c.Clientset().CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, "kube-controller-manager", metav1.GetOptions{}))
	// A holder identity is a node's name with a unique suffix.
	leader, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	Expect(g.nodes).To(ContainElement(leader), "the node of the leading controller manager, whose API server is used")
	g.victim = g.nodes[(slices.Index(g.nodes, leader)+1)%len(g.nodes)]
	address := suite.Must(c.Address(ctx, leader))
	config := c.RESTConfig()
	config.Host = "https://" + net.JoinHostPort(address, apiServerPort)
	g.kube = suite.Must(kubernetes.NewForConfig(config))
	onNode(ctx, c, g.victim, "sh", "-c", redirect, "sh", config.Host)
	reading := topology.ReadingOf(configv1.HighlyAvailableTopologyMode)
	g.host = suite.Must(etcdguard.NewHost(topology.Cluster{ControlPlane: reading, Infrastructure: reading}, len(g.nodes), guardImage))
	return g
}

// install installs the guard like an etcd operator that vendors the module, with what it needs: labels of nodes, an
// image, and kubeadm's certificates of etcd clients.
func (g *guarded) install(ctx context.Context) {
	GinkgoHelper()
	for _, node := range g.nodes {
		body := fmt.Appendf(nil, `{"metadata":{"labels":{%q:""}}}`, machineconfig.MasterRole)
		suite.Must(g.kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{}))
	}
	layer, archive := filepath.Join(GinkgoT().TempDir(), "layer.tar"), filepath.Join(GinkgoT().TempDir(), "image.tar")
	Expect(g.Pack(ctx, layer, "/bin/sh", "/usr/bin/curl", "/usr/bin/sleep")).To(Succeed())
	Expect(images.Write(archive, images.Image{Name: guardImage, Tar: layer})).To(Succeed())
	Expect(g.Load(ctx, archive)).To(Succeed())
	suite.Must(g.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: etcdguard.Namespace}}, metav1.CreateOptions{}))
	secret, bundle := etcdObjects(ctx, g.Cluster, g.nodes[0])
	suite.Must(g.kube.CoreV1().Secrets(etcdguard.Namespace).Create(ctx, secret, metav1.CreateOptions{}))
	suite.Must(g.kube.CoreV1().ConfigMaps(etcdguard.Namespace).Create(ctx, bundle, metav1.CreateOptions{}))
	deployment := suite.Must(etcdguard.Deployment(g.host))
	suite.Must(g.kube.AppsV1().Deployments(etcdguard.Namespace).Create(ctx, deployment, metav1.CreateOptions{}))
	budget := suite.Must(etcdguard.DisruptionBudget(g.host))
	suite.Must(g.kube.PolicyV1().PodDisruptionBudgets(etcdguard.Namespace).Create(ctx, budget, metav1.CreateOptions{}))
}

// budget waits until the budget has these numbers of healthy guards and allowed disruptions.
func (g *guarded) budget(ctx context.Context, healthy, allowed int32) {
	GinkgoHelper()
	Eventually(ctx, func(try Gomega, ctx context.Context) {
		b, err := g.kube.PolicyV1().PodDisruptionBudgets(etcdguard.Namespace).Get(ctx, etcdguard.GuardName, metav1.GetOptions{})
		try.Expect(err).NotTo(HaveOccurred())
		try.Expect(b.Status.ObservedGeneration).To(Equal(b.Generation))
		try.Expect(b.Status.CurrentHealthy).To(Equal(healthy), "guards that are ready")
		try.Expect(b.Status.DisruptionsAllowed).To(Equal(allowed), "guards that can be evicted")
	}).Should(Succeed())
}

// guards returns one pod for each node, not being deleted.
func (g *guarded) guards(ctx context.Context) []*corev1.Pod {
	GinkgoHelper()
	deployment := suite.Must(etcdguard.Deployment(g.host))
	of := labels.SelectorFromSet(deployment.Spec.Selector.MatchLabels).String()
	list := suite.Must(g.kube.CoreV1().Pods(etcdguard.Namespace).List(ctx, metav1.ListOptions{LabelSelector: of}))
	var pods []*corev1.Pod
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			pods = append(pods, &list.Items[i])
		}
	}
	Expect(pods).To(HaveLen(len(g.nodes)))
	return pods
}

// evict requests an eviction as a drain does.
func (g *guarded) evict(ctx context.Context, pod *corev1.Pod) error {
	return g.kube.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
}
