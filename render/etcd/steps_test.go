// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"crypto/x509"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

var three = []string{"192.168.2.1", "192.168.2.2", "192.168.2.3"}

// One node has 8 Secrets and 3 bundles, three nodes have 14 and 3 (R-REN-8).
func TestCertificates(t *testing.T) {
	shared := []string{"etcd-all-certs", "etcd-client", "etcd-metric-client", "etcd-metric-signer", "etcd-signer"}
	for name, test := range map[string]struct {
		addresses []string
		count     int
		ofNodes   []string
	}{
		"one node": {three[:1], 8, []string{"etcd-peer-cp-1", "etcd-serving-cp-1", "etcd-serving-metrics-cp-1"}},
		"three nodes": {three, 14, []string{
			"etcd-peer-cp-1", "etcd-serving-cp-1", "etcd-serving-metrics-cp-1",
			"etcd-peer-cp-2", "etcd-serving-cp-2", "etcd-serving-metrics-cp-2",
			"etcd-peer-cp-3", "etcd-serving-cp-3", "etcd-serving-metrics-cp-3",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := fixture.Settings(inputs.Kubernetes, test.addresses...)
			st := fixture.Store(t, fixture.Objects(s)...)
			if _, err := fixture.Run(st, Steps(s)[:2]...); err != nil {
				t.Fatal(err)
			}
			core := fixture.Session(st).Kube().CoreV1()
			var secrets, bundles []string
			list, err := core.Secrets("").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range list.Items {
				secrets = append(secrets, secret.Namespace+"/"+secret.Name)
			}
			configMaps, err := core.ConfigMaps("").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, configMap := range configMaps.Items {
				bundles = append(bundles, configMap.Namespace+"/"+configMap.Name)
			}
			var want []string
			for _, name := range append(slices.Clone(shared), test.ofNodes...) {
				want = append(want, "openshift-etcd/"+name)
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, secrets); diff != "" || len(secrets) != test.count {
				t.Errorf("%d Secrets, want %d (-want +got):\n%s", len(secrets), test.count, diff)
			}
			wantBundles := []string{"openshift-etcd/etcd-all-bundles", "openshift-etcd/etcd-ca-bundle", "openshift-etcd/etcd-metrics-ca-bundle"}
			if diff := cmp.Diff(wantBundles, bundles); diff != "" {
				t.Errorf("bundles (-want +got):\n%s", diff)
			}
			for _, node := range s.Nodes {
				checkMember(t, st, peer(node.Name), signerCA, "192.168.2."+node.Name[3:])
				checkMember(t, st, serving(node.Name), signerCA, "etcd.openshift-etcd.svc")
				checkMember(t, st, servingMetrics(node.Name), metricsCA, "localhost")
			}
			all, err := core.Secrets(namespace).Get(t.Context(), allCerts.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if want := 2 * 3 * len(s.Nodes); len(all.Data) != want || len(all.Data["etcd-peer-cp-1.key"]) == 0 {
				t.Errorf("etcd-all-certs has %d files, want %d, among them etcd-peer-cp-1.key", len(all.Data), want)
			}
		})
	}
}

// checkMember checks that the bundle trusts the certificate for a server of that name and for a client.
func checkMember(t *testing.T, st *store.Store, certificate, bundle store.Object, name string) {
	t.Helper()
	secret, err := fixture.Session(st).Kube().CoreV1().Secrets(certificate.Namespace).Get(t.Context(), certificate.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	chain, err := cert.ParseCertsPEM(secret.Data["tls.crt"])
	if err != nil {
		t.Fatal(err)
	}
	roots, err := cert.NewPoolFromBytes([]byte(fixture.ConfigMapData(t, st, bundle.Namespace, bundle.Name)["ca-bundle.crt"]))
	if err != nil {
		t.Fatal(err)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if _, err := chain[0].Verify(x509.VerifyOptions{DNSName: name, Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			t.Errorf("%s for usage %d as %s: %v", certificate, usage, name, err)
		}
	}
}

func TestSteps(t *testing.T) {
	for _, profile := range []inputs.Profile{inputs.OpenShift, inputs.Kubernetes} {
		for name, addresses := range map[string][]string{"one": three[:1], "three": three} {
			t.Run(string(profile)+" "+name, func(t *testing.T) {
				s := fixture.Settings(profile, addresses...)
				st := fixture.Store(t, fixture.Objects(s)...)
				if _, err := fixture.Run(st, Steps(s)...); err != nil {
					t.Fatal(err)
				}
				folder := string(profile) + "/" + name + "-"
				fixture.Golden(t, folder+"pod.yaml", fixture.ConfigMapData(t, st, namespace, "etcd-pod-1")["pod.yaml"])
				fixture.Golden(t, folder+"etcd.env", fixture.ConfigMapData(t, st, namespace, "etcd-scripts")["etcd.env"])
				want := map[string]string{"MTkyLjE2OC4yLjE": "192.168.2.1"}
				if name == "three" {
					want["MTkyLjE2OC4yLjI"], want["MTkyLjE2OC4yLjM"] = "192.168.2.2", "192.168.2.3"
				}
				if diff := cmp.Diff(want, fixture.ConfigMapData(t, st, namespace, "etcd-endpoints")); diff != "" {
					t.Errorf("endpoints (-want +got):\n%s", diff)
				}
				bundle := fixture.ConfigMapData(t, st, configNamespace, "etcd-serving-ca")
				if diff := cmp.Diff(fixture.ConfigMapData(t, st, namespace, "etcd-ca-bundle"), bundle); diff != "" {
					t.Errorf("what kube-apiserver trusts (-want +got):\n%s", diff)
				}
				wrote, err := fixture.Run(st, Steps(s)...)
				if diff := cmp.Diff([]string{}, fixture.WithoutOperatorResources(wrote), cmpopts.EquateEmpty()); diff != "" || err != nil {
					t.Errorf("a second run must write nothing (-want +got), error %v:\n%s", err, diff)
				}
			})
		}
	}
}

// The run fails if a loop runs before one that writes what it needs (R-REN-4).
func TestOrder(t *testing.T) {
	s := fixture.Settings(inputs.Kubernetes, three[0])
	certified := fixture.ObjectsAfter(t, fixture.Objects(s), Steps(s)[0])
	for _, swap := range [][2]string{
		{"all certificates", "revision"},
		{"endpoints", "target config"},
		{"config observation", "target config"},
		{"target config", "revision"},
		{"revision", "revision of the nodes"},
	} {
		t.Run(strings.Join(swap[:], " and "), func(t *testing.T) {
			swapped := fixture.SwapLoops(t, Steps(s), component+": "+swap[0], component+": "+swap[1])
			_, err := fixture.Run(fixture.Store(t, certified...), swapped...)
			if !errors.Is(err, loop.ErrOrder) && !errors.Is(err, loop.ErrFailed) {
				t.Fatalf("the run must fail: %v", err)
			}
		})
	}
	for _, later := range []string{"all certificates", "resource sync"} {
		t.Run("certificates and "+later, func(t *testing.T) {
			swapped := fixture.SwapLoops(t, Steps(s), component+": certificates", component+": "+later)
			if _, err := fixture.Run(fixture.Store(t, fixture.Objects(s)...), swapped...); err == nil {
				t.Fatal("the run must fail")
			}
		})
	}
}

func TestMembers(t *testing.T) {
	node := func(addresses ...string) inputs.Node {
		n := inputs.Node{Name: "cp-1"}
		for _, a := range addresses {
			n.Addresses = append(n.Addresses, netip.MustParseAddr(a))
		}
		return n
	}
	for name, test := range map[string]struct {
		node     inputs.Node
		services []string
		cluster  string
		urls     string
		err      error
	}{
		"IPv4": {
			node: node("192.168.2.1"), services: []string{"172.30.0.0/16"},
			cluster: "cp-1=https://192.168.2.1:2380", urls: "https://192.168.2.1:2379",
		},
		"IPv6 has brackets": {
			node: node("fd00::1"), services: []string{"fd02::/112"},
			cluster: "cp-1=https://[fd00::1]:2380", urls: "https://[fd00::1]:2379",
		},
		"the family of Services": {
			node: node("fd00::1", "192.168.2.1"), services: []string{"172.30.0.0/16", "fd02::/112"},
			cluster: "cp-1=https://192.168.2.1:2380", urls: "https://192.168.2.1:2379",
		},
		"no address of the family": {node: node("192.168.2.1"), services: []string{"fd02::/112"}, err: ErrNoAddress},
		"no network":               {node: node("192.168.2.1"), err: ErrNoAddress},
	} {
		t.Run(name, func(t *testing.T) {
			s := fixture.Settings(inputs.Kubernetes)
			s.Nodes = []inputs.Node{test.node}
			s.Cluster.Network.Spec.ServiceNetwork = test.services
			all, err := members(s, s.Cluster.Network)
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if err != nil {
				return
			}
			if got := initialCluster(all); got != test.cluster {
				t.Errorf("initial cluster %s, want %s", got, test.cluster)
			}
			if got := clientURLs(all); got != test.urls {
				t.Errorf("endpoints %s, want %s", got, test.urls)
			}
		})
	}
}
