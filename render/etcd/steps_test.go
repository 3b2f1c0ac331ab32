// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

var three = []string{"192.168.2.1", "192.168.2.2", "192.168.2.3"}

// One node has 8 Secrets and 3 bundles, three nodes have 14 and 3 (R-REN-8).
func TestCertificates(t *testing.T) {
	for count, addresses := range map[int][]string{8: three[:1], 14: three} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			s := fixture.Settings(inputs.Kubernetes, addresses...)
			st := fixture.Store(t, fixture.Objects(s)...)
			if _, err := fixture.Run(st, Steps(s)[:2]...); err != nil {
				t.Fatal(err)
			}
			want := []string{
				"ConfigMap etcd-all-bundles", "ConfigMap etcd-ca-bundle", "ConfigMap etcd-metrics-ca-bundle",
				"Secret etcd-all-certs", "Secret etcd-client", "Secret etcd-metric-client", "Secret etcd-metric-signer", "Secret etcd-signer",
			}
			for _, name := range s.NodeNames() {
				want = append(want, "Secret etcd-peer-"+name, "Secret etcd-serving-"+name, "Secret etcd-serving-metrics-"+name)
			}
			slices.Sort(want)
			objects, err := st.Objects()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, object := range objects {
				if m := object.(metav1.Object); m.GetNamespace() == namespace {
					got = append(got, object.GetObjectKind().GroupVersionKind().Kind+" "+m.GetName())
				}
			}
			if diff := cmp.Diff(want, got); diff != "" || len(got) != count+3 {
				t.Errorf("%d Secrets, want %d (-want +got):\n%s", len(got)-3, count, diff)
			}
			for _, node := range s.Nodes {
				checkMember(t, st, peer(node.Name), signerCA, "192.168.2."+node.Name[3:])
				checkMember(t, st, serving(node.Name), signerCA, "etcd.openshift-etcd.svc")
				checkMember(t, st, servingMetrics(node.Name), metricsCA, "localhost")
			}
			all := fixture.SecretData(t, st, allCerts)
			if want := 2 * 3 * len(s.Nodes); len(all) != want || len(all["etcd-peer-cp-1.key"]) == 0 {
				t.Errorf("etcd-all-certs has %d files, want %d, among them etcd-peer-cp-1.key", len(all), want)
			}
		})
	}
}

// checkMember checks that the bundle trusts the certificate for a server of that name and for a client.
func checkMember(t *testing.T, st *store.Store, certificate, bundle store.Object, name string) {
	t.Helper()
	roots := fixture.Pool(t, []byte(fixture.ConfigMapData(t, st, bundle.Namespace, bundle.Name)["ca-bundle.crt"]))
	fixture.Verify(t, roots, fixture.Leaf(t, fixture.SecretData(t, st, certificate)["tls.crt"]), name, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

func TestSteps(t *testing.T) {
	for _, profile := range []inputs.Profile{inputs.OpenShift, inputs.Kubernetes} {
		for name, addresses := range map[string][]string{"one": three[:1], "three": three} {
			t.Run(string(profile)+" "+name, func(t *testing.T) {
				s := fixture.Settings(profile, addresses...)
				st := fixture.Store(t, fixture.Objects(s)...)
				fixture.CheckSteps(t, st, Steps(s), profile, namespace,
					fixture.File{ConfigMap: "etcd-pod-1", Key: "pod.yaml", Golden: name + "-pod.yaml"},
					fixture.File{ConfigMap: "etcd-scripts", Key: "etcd.env", Golden: name + "-etcd.env"})
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
			})
		}
	}
}

func TestOrder(t *testing.T) {
	s := fixture.Settings(inputs.Kubernetes, three[0])
	fixture.CheckOrder(t, fixture.Objects(s), Steps(s), component, [2]string{"certificates", "all certificates"}, [2]string{"certificates", "resource sync"})
	certified := fixture.ObjectsAfter(t, fixture.Objects(s), Steps(s)[0])
	fixture.CheckOrder(t, certified, Steps(s), component, [2]string{"all certificates", "revision"}, [2]string{"endpoints", "target config"},
		[2]string{"config observation", "target config"}, [2]string{"target config", "revision"}, [2]string{"revision", "revision of the nodes"})
}

// Nothing is written if the endpoints, which kube-apiserver uses, are not those of the nodes.
func TestForeignEndpoints(t *testing.T) {
	s := fixture.Settings(inputs.Kubernetes, three[0])
	foreign := fixture.ConfigMap(endpoints.Namespace, endpoints.Name, map[string]string{"MTAuMC4wLjE": "10.0.0.1"})
	observed := Steps(s)[4].Loops[:2]
	st := fixture.Store(t, fixture.Objects(s, foreign)...)
	if wrote, err := fixture.Run(st, loop.Once(observed[0]), loop.Once(observed[1])); !errors.Is(err, ErrWrongEndpoints) {
		t.Errorf("error %v, want %v; wrote %v", err, ErrWrongEndpoints, wrote)
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
