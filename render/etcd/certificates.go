// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"strings"

	"github.com/openshift/api/annotations"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

// certificates returns 2 signers, 2 client certificates and 3 certificates per node (R-REN-8), those of a node for
// server and client (U-REN-22).
func certificates(s *inputs.Settings) []librarygo.Certificate {
	base := librarygo.Certificate{
		Signer: signer, SignerValidity: s.Validity, Bundle: signerCA, Validity: s.Validity, Component: component,
	}
	metrics := base
	metrics.Signer, metrics.Bundle = metricsSigner, metricsCA

	all := []librarygo.Certificate{
		clientOf(base, client, "etcd-client"),
		clientOf(metrics, metricsClient, "etcd-metric"),
	}
	for _, node := range s.Nodes {
		all = append(all,
			memberOf(base, peer(node.Name), node),
			memberOf(base, serving(node.Name), node),
			memberOf(metrics, servingMetrics(node.Name), node))
	}
	return all
}

func clientOf(c librarygo.Certificate, target store.Object, name string) librarygo.Certificate {
	c.Target = target
	c.Client = &user.DefaultInfo{Name: name, Groups: []string{"system:etcd", name}}
	return c
}

func memberOf(c librarygo.Certificate, target store.Object, node inputs.Node) librarygo.Certificate {
	c.Target = target
	c.Client = &user.DefaultInfo{Name: "system:etcd-member", Groups: []string{"system:etcd"}}
	c.Hosts = func() ([]string, error) { return hosts(node), nil }
	return c
}

// hosts returns the names and addresses of a member (U-REN-22).
func hosts(node inputs.Node) []string {
	names := []string{
		"localhost", "127.0.0.1", "::1",
		"etcd.kube-system.svc", "etcd.kube-system.svc.cluster.local",
		"etcd.openshift-etcd.svc", "etcd.openshift-etcd.svc.cluster.local",
	}
	for _, address := range node.Addresses {
		names = append(names, address.String())
	}
	return names
}

// collectCertificates returns the loop that writes all certificates and bundles as one Secret and one ConfigMap.
func collectCertificates(s *inputs.Settings) loop.Loop {
	return loop.Loop{
		Name:   component + ": all certificates",
		Writes: append(store.Secrets(namespace, allCerts.Name), store.ConfigMaps(namespace, allBundles.Name)...),
		New: loop.Stateless(func(ctx context.Context, session *store.Session) error {
			core := session.Kube().CoreV1()
			data := map[string][]byte{}
			for _, node := range s.Nodes {
				for _, o := range []store.Object{peer(node.Name), serving(node.Name), servingMetrics(node.Name)} {
					certificate, err := core.Secrets(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
					if err != nil {
						return err
					}
					for key, value := range certificate.Data {
						data[o.Name+strings.TrimPrefix(key, "tls")] = value
					}
				}
			}
			bundles := map[string]string{}
			for key, o := range map[string]store.Object{"server-ca-bundle.crt": signerCA, "metrics-ca-bundle.crt": metricsCA} {
				bundle, err := core.ConfigMaps(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				bundles[key] = bundle.Data["ca-bundle.crt"]
			}
			return librarygo.Apply(ctx, session,
				&corev1.Secret{ObjectMeta: owned(allCerts), Type: corev1.SecretTypeOpaque, Data: data},
				&corev1.ConfigMap{ObjectMeta: owned(allBundles), Data: bundles})
		}),
	}
}

func owned(o store.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name,
		Annotations: map[string]string{annotations.OpenShiftComponent: component},
	}
}
