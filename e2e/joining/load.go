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
	"time"

	"golang.org/x/sync/errgroup"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/solonode/sno/testcluster/embedded"
)

const creators = 32

// CreateNodes creates Node objects of a realistic size, with lists of images. Their names are crowd-00000 and so on,
// and they share one kubelet.
func CreateNodes(ctx context.Context, c *embedded.Cluster, nodes int, kubelet *Kubelet) error {
	kube, err := connect(c.RESTConfig())
	if err != nil {
		return err
	}
	images := make([]corev1.ContainerImage, 50)
	for i := range images {
		images[i] = corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.invalid/openshift/image-%02d@sha256:%064d", i, i)}, SizeBytes: 1 << 28}
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range nodes {
		group.Go(func() error {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: crowdName(i)}, Status: kubelet.Status()}
			node.Status.Images = images
			_, err := kube.CoreV1().Nodes().Create(groupCtx, node, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("make %d nodes: %w", nodes, err)
	}
	return nil
}

func crowdName(i int) string { return fmt.Sprintf("crowd-%05d", i) }

// CreateRequests creates requests that must stay pending: of nodes outside of the inventory, and of hostile nodes for
// additional names that only their kubelets could prove. A third is of a single node.
func CreateRequests(ctx context.Context, c *embedded.Cluster, requests, nodes int) error {
	bootstrapper, err := Bootstrapper(ctx, c)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	hostile := map[int]*kubernetes.Clientset{}
	for i := range requests {
		if i%3 == 0 {
			group.Go(func() error {
				return submit(groupCtx, bootstrapper, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth, key,
					x509.CertificateRequest{Subject: Subject(fmt.Sprintf("unknown-%05d", i))})
			})
			continue
		}
		node := 0
		if i%3 == 1 {
			node = i % min(nodes, hostileNodes)
		}
		if hostile[node] == nil {
			config, err := c.ConfigForUser(nodePrefix+crowdName(node), nodesGroup)
			if err != nil {
				return err
			}
			if hostile[node], err = connect(config); err != nil {
				return err
			}
		}
		kube := hostile[node]
		group.Go(func() error {
			return submit(groupCtx, kube, certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth, key,
				x509.CertificateRequest{Subject: Subject(crowdName(node)), DNSNames: []string{crowdName(node)}, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)}})
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("make %d requests: %w", requests, err)
	}
	return nil
}

const hostileNodes = 200

func submit(ctx context.Context, kube *kubernetes.Clientset, signer string, usage certificatesv1.KeyUsage, key *ecdsa.PrivateKey, template x509.CertificateRequest) error {
	text, err := sign(key, template)
	if err != nil {
		return err
	}
	_, err = kube.CertificatesV1().CertificateSigningRequests().Create(ctx, object(signer, usage, text), metav1.CreateOptions{})
	return err
}

// TimeToApproval creates the request of a node that joins, and returns how long its approval takes.
func TimeToApproval(ctx context.Context, c *embedded.Cluster, node string) (time.Duration, error) {
	bootstrapper, err := Bootstrapper(ctx, c)
	if err != nil {
		return 0, err
	}
	made := time.Now()
	request, err := RequestClientCertificate(ctx, bootstrapper, node)
	if err != nil {
		return 0, err
	}
	watcher, err := bootstrapper.CertificatesV1().CertificateSigningRequests().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + request.Name})
	if err != nil {
		return 0, fmt.Errorf("watch %s: %w", request.Name, err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if csr, ok := event.Object.(*certificatesv1.CertificateSigningRequest); ok && len(csr.Status.Conditions) > 0 {
			return time.Since(made), nil
		}
	}
	return 0, fmt.Errorf("wait until %s is approved: %w", request.Name, ctx.Err())
}
