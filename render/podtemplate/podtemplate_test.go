// SPDX-License-Identifier: Apache-2.0

package podtemplate_test

import (
	"errors"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/podtemplate"
)

func TestQuote(t *testing.T) {
	arguments := []string{"--controllers=*", "--a=b", "it's", "$HOME `id` \\", "a  b", "--list=a,b", "~", "x#y", "!1"}
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", `printf '%s\n' `+podtemplate.Quote(arguments)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(arguments, strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := podtemplate.Quote([]string{"--a=b"}), "--a=b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestServer(t *testing.T) {
	known := &configv1.Infrastructure{Status: configv1.InfrastructureStatus{APIServerInternalURL: "https://api-int.example.test:6443"}}
	for name, test := range map[string]struct {
		infrastructure *configv1.Infrastructure
		profile        inputs.Profile
		want           string
		err            error
	}{
		"OpenShift":            {known, inputs.OpenShift, "https://api-int.example.test:6443", nil},
		"OpenShift, not known": {&configv1.Infrastructure{}, inputs.OpenShift, "", podtemplate.ErrNoServer},
		"Kubernetes":           {known, inputs.Kubernetes, "https://localhost:6443", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := podtemplate.Server(test.infrastructure, test.profile)
			if !errors.Is(err, test.err) || got != test.want {
				t.Errorf("got %s, want %s, error %v", got, test.want, err)
			}
		})
	}
}

// The sidecars use the kube-apiserver certificate that is valid the longest (U-REN-12).
func TestLoopbackKubeconfig(t *testing.T) {
	configMap, err := podtemplate.LoopbackKubeconfig("kube-scheduler").ConfigMap("ns", "name")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load([]byte(configMap.Data["kubeconfig"]))
	if err != nil {
		t.Fatal(err)
	}
	context := config.Contexts[config.CurrentContext]
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	got := []string{cluster.Server, cluster.TLSServerName, cluster.CertificateAuthority, user.ClientCertificate, user.ClientKey}
	want := []string{
		"https://localhost:6443", "localhost-recovery", "/etc/kubernetes/static-pod-resources/configmaps/serviceaccount-ca/ca-bundle.crt",
		"/etc/kubernetes/static-pod-certs/secrets/localhost-recovery-client-cert-key/tls.crt",
		"/etc/kubernetes/static-pod-certs/secrets/localhost-recovery-client-cert-key/tls.key",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	recovery := podtemplate.RecoveryUser("ns")
	if recovery.Name != "system:serviceaccount:ns:localhost-recovery-client" {
		t.Errorf("the certificate must be for the user of the ServiceAccount, not %s", recovery.Name)
	}
}

// The timing is kubeadm's (U-REN-11).
func TestProbes(t *testing.T) {
	type timing struct{ delay, period, failures, timeout int32 }
	endpoint := podtemplate.Endpoint{Host: podtemplate.Loopback(netip.MustParseAddr("fd00::1")), Port: 1, Scheme: corev1.URISchemeHTTPS}
	for name, test := range map[string]struct {
		probe *corev1.Probe
		want  timing
	}{
		"liveness":  {endpoint.Liveness("/livez"), timing{10, 10, 8, 15}},
		"readiness": {endpoint.Readiness("/livez"), timing{0, 1, 3, 15}},
		"startup":   {endpoint.Startup("/livez"), timing{10, 10, 24, 15}},
	} {
		p := test.probe
		if got := (timing{p.InitialDelaySeconds, p.PeriodSeconds, p.FailureThreshold, p.TimeoutSeconds}); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		if p.HTTPGet.Host != "::1" {
			t.Errorf("%s: host %s, want the loopback address of the node's family", name, p.HTTPGet.Host)
		}
	}
	if got := podtemplate.Loopback(netip.MustParseAddr("192.168.2.1")).String(); got != "127.0.0.1" {
		t.Errorf("loopback %s", got)
	}
	if got := (podtemplate.Endpoint{Port: 1}).Get("/").HTTPGet.Host; got != "" {
		t.Errorf("without a host the probe must use the pod's address, not %s", got)
	}
}
