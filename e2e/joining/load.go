// SPDX-License-Identifier: Apache-2.0

package joining

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"net"

	. "github.com/onsi/ginkgo/v2" //nolint:staticcheck // a dot import, as in specs
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/embedded"
)

const creators, hostileNodes = 32, 200

func inParallel(ctx context.Context, number int, create func(int)) {
	workqueue.ParallelizeUntil(ctx, creators, number, func(i int) {
		defer GinkgoRecover()
		create(i)
	})
}

// CreateNodes creates Node objects of a realistic size, with lists of images. Their names are crowd-00000 and so on,
// and they share one kubelet.
func CreateNodes(ctx context.Context, c *embedded.Cluster, nodes int, kubelet *Kubelet) {
	kube, images := connect(c.RESTConfig()), make([]corev1.ContainerImage, 50)
	for i := range images {
		images[i] = corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.invalid/openshift/image-%02d@sha256:%064d", i, i)}, SizeBytes: 1 << 28}
	}
	inParallel(ctx, nodes, func(i int) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: crowdName(i)}, Status: kubelet.Status()}
		node.Status.Images = images
		suite.Must(kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}))
	})
}

func crowdName(i int) string { return fmt.Sprintf("crowd-%05d", i) }

// CreateRequests creates requests that must stay pending: of nodes outside of the inventory, and of hostile nodes for
// additional names that only their kubelets could prove. A third is of a single node.
func CreateRequests(ctx context.Context, c *embedded.Cluster, requests int) {
	bootstrapper, key := Bootstrapper(ctx, c), suite.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	var hostile [hostileNodes]*kubernetes.Clientset
	for i := range hostile {
		hostile[i] = connect(suite.Must(c.ConfigForUser(nodePrefix+crowdName(i), nodesGroup)))
	}
	inParallel(ctx, requests, func(i int) {
		if i%3 == 0 {
			submit(ctx, bootstrapper, clientSigner, key, x509.CertificateRequest{Subject: Subject(fmt.Sprintf("unknown-%05d", i))})
			return
		}
		node := 0
		if i%3 == 1 {
			node = i % hostileNodes
		}
		submit(ctx, hostile[node], servingSigner, key,
			x509.CertificateRequest{Subject: Subject(crowdName(node)), DNSNames: []string{crowdName(node)}, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)}})
	})
}
