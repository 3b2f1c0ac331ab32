// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"crypto/x509"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/store"
)

// R-REN-10.
func TestCertificates(t *testing.T) {
	s := settings(inputs.Kubernetes)
	st := runDefault(t, inputs.Kubernetes)
	clients := fixture.Pool(t, []byte(fixture.ConfigMapData(t, st, Namespace, "client-ca")[bundleKey]))
	aggregator := fixture.Pool(t, []byte(fixture.ConfigMapData(t, st, Namespace, "aggregator-client-ca")[bundleKey]))
	servers := fixture.Pool(t, []byte(fixture.ConfigMapData(t, st, Namespace, "kube-apiserver-server-ca-1")[bundleKey]))
	in := func(namespace, name string) store.Object { return store.Object{Namespace: namespace, Name: name} }
	for _, tt := range []struct {
		secret store.Object
		bundle *x509.CertPool
		user   string
		groups string
		hosts  string
	}{
		{secret: in(Namespace, "aggregator-client"), bundle: aggregator, user: "system:openshift-aggregator"},
		{secret: in(Namespace, "kubelet-client"), bundle: clients, user: "system:kube-apiserver", groups: "kube-master"},
		{secret: in(managedNamespace, "kube-controller-manager-client-cert-key"), bundle: clients, user: "system:kube-controller-manager"},
		{secret: in(managedNamespace, "kube-scheduler-client-cert-key"), bundle: clients, user: "system:kube-scheduler"},
		{secret: in(Namespace, "control-plane-node-admin-client-cert-key"), bundle: clients, user: "system:control-plane-node-admin", groups: "system:masters"},
		{secret: in(Namespace, "check-endpoints-client-cert-key"), bundle: clients, user: "system:serviceaccount:openshift-kube-apiserver:check-endpoints"},
		{secret: in(operatorNamespace, "node-system-admin-client"), bundle: clients, user: "system:admin", groups: "system:masters"},
		{secret: in(operatorNamespace, "admin-kubeconfig-client"), bundle: clients, user: "system:admin", groups: "system:masters"},
		{
			secret: in("openshift-machine-config-operator", "node-bootstrapper-client-cert-key"), bundle: clients,
			user:   "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
			groups: "system:serviceaccounts system:serviceaccounts:openshift-machine-config-operator",
		},
		{secret: in(Namespace, "localhost-serving-cert-certkey"), bundle: servers, hosts: "127.0.0.1 localhost"},
		{
			secret: in(Namespace, "service-network-serving-certkey"), bundle: servers,
			hosts: "172.30.0.1 kubernetes kubernetes.default kubernetes.default.svc kubernetes.default.svc.cluster.local",
		},
		{secret: in(Namespace, "external-loadbalancer-serving-certkey"), bundle: servers, hosts: "api.example.test"},
		{secret: in(Namespace, "internal-loadbalancer-serving-certkey"), bundle: servers, hosts: "api-int.example.test"},
		{secret: in(Namespace, "localhost-recovery-serving-certkey"), bundle: servers, hosts: "localhost-recovery"},
	} {
		t.Run(tt.secret.Name, func(t *testing.T) {
			certificate := fixture.Leaf(t, fixture.SecretData(t, st, tt.secret)[corev1.TLSCertKey])
			if life := certificate.NotAfter.Sub(certificate.NotBefore); life < s.Validity-time.Hour || life > s.Validity+time.Hour {
				t.Errorf("it is valid for %s, want %s", life, s.Validity)
			}
			usage := x509.ExtKeyUsageClientAuth
			if tt.hosts != "" {
				usage = x509.ExtKeyUsageServerAuth
				var hosts []string
				for _, address := range certificate.IPAddresses {
					hosts = append(hosts, address.String())
				}
				for _, name := range certificate.DNSNames {
					if !slices.Contains(hosts, name) { // library-go lists addresses as names too.
						hosts = append(hosts, name)
					}
				}
				slices.Sort(hosts)
				if diff := cmp.Diff(tt.hosts, strings.Join(hosts, " ")); diff != "" {
					t.Errorf("hosts (-want +got):\n%s", diff)
				}
			} else {
				groups := slices.Sorted(slices.Values(certificate.Subject.Organization))
				if diff := cmp.Diff([]string{tt.user, tt.groups}, []string{certificate.Subject.CommonName, strings.Join(groups, " ")}); diff != "" {
					t.Errorf("user and groups (-want +got):\n%s", diff)
				}
			}
			fixture.Verify(t, tt.bundle, certificate, "", usage)
		})
	}
	if _, err := fixture.Leaf(t, fixture.SecretData(t, st, in(Namespace, "aggregator-client"))[corev1.TLSCertKey]).Verify(
		x509.VerifyOptions{Roots: clients, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err == nil {
		t.Error("the aggregator's certificate is good for a client of kube-apiserver")
	}
}

func TestKubeconfigs(t *testing.T) {
	st := runDefault(t, inputs.Kubernetes)
	certificate := func(object store.Object) []byte { return fixture.SecretData(t, st, object)[corev1.TLSCertKey] }
	for _, tt := range []struct {
		secret, certificate store.Object
		servers             map[string]string
	}{
		{
			store.Object{Namespace: Namespace, Name: "node-kubeconfigs"}, nodeSystemAdmin,
			map[string]string{
				"localhost.kubeconfig": "https://localhost:6443", "localhost-recovery.kubeconfig": "https://localhost:6443 localhost-recovery",
				"lb-int.kubeconfig": "https://api-int.example.test:6443", "lb-ext.kubeconfig": "https://api.example.test:6443",
			},
		},
		{
			store.Object{Namespace: AdminNamespace, Name: AdminKubeconfigs}, clusterAdmin,
			map[string]string{
				LocalhostKubeconfig: "https://localhost:6443", InternalKubeconfig: "https://api-int.example.test:6443", ExternalKubeconfig: "https://api.example.test:6443",
			},
		},
		{
			store.Object{Namespace: BootstrapNamespace, Name: BootstrapKubeconfigs}, nodeBootstrapper,
			map[string]string{LocalhostKubeconfig: "https://localhost:6443", InternalKubeconfig: "https://api-int.example.test:6443"},
		},
	} {
		servers := map[string]string{}
		for key, text := range fixture.SecretData(t, st, tt.secret) {
			config, err := clientcmd.RESTConfigFromKubeConfig(text)
			if err != nil {
				t.Fatalf("%s %s: %v", tt.secret, key, err)
			}
			servers[key] = strings.TrimSpace(config.Host + " " + config.ServerName)
			if !slices.Equal(config.CertData, certificate(tt.certificate)) {
				t.Errorf("%s %s has not the certificate %s", tt.secret, key, tt.certificate)
			}
			if string(config.CAData) != fixture.ConfigMapData(t, st, Namespace, "kube-apiserver-server-ca")[bundleKey] {
				t.Errorf("%s %s does not use kube-apiserver-server-ca", tt.secret, key)
			}
		}
		if diff := cmp.Diff(tt.servers, servers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.secret, diff)
		}
	}
	for _, name := range []string{"kube-apiserver-cert-syncer-kubeconfig", "check-endpoints-kubeconfig", "control-plane-node-kubeconfig"} {
		config, err := clientcmd.Load([]byte(fixture.ConfigMapData(t, st, Namespace, name)["kubeconfig"]))
		if err != nil {
			t.Fatal(err)
		}
		if config.CurrentContext == "" || config.Contexts[config.CurrentContext] == nil {
			t.Errorf("%s has no current context: %+v", name, config)
		}
	}
}
