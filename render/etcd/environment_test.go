// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/observe"
)

// etcd supports TLS 1.2 and 1.3, and rejects ciphers with 1.3 (U-REN-24).
func TestTLSOf(t *testing.T) {
	serving := func(version string) map[string]any {
		return map[string]any{"servingInfo": map[string]any{"minTLSVersion": version, "cipherSuites": []any{"A", "B"}}}
	}
	for name, test := range map[string]struct {
		observed map[string]any
		want     tlsSettings
		err      error
	}{
		"1.0":          {serving("VersionTLS10"), tlsSettings{"TLS1.2", []string{"A", "B"}}, nil},
		"1.2":          {serving("VersionTLS12"), tlsSettings{"TLS1.2", []string{"A", "B"}}, nil},
		"1.3":          {serving("VersionTLS13"), tlsSettings{version: "TLS1.3"}, nil},
		"not observed": {nil, tlsSettings{}, observe.ErrNotObserved},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tlsOf(test.observed)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(tlsSettings{})); diff != "" || !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v (-want +got):\n%s", err, test.err, diff)
			}
		})
	}
}

func TestPace(t *testing.T) {
	for name, test := range map[string]struct {
		platform            *configv1.PlatformStatus
		heartbeat, election string
	}{
		"unknown":             {nil, "100", "1000"},
		"none":                {&configv1.PlatformStatus{Type: configv1.NonePlatformType}, "100", "1000"},
		"Azure":               {&configv1.PlatformStatus{Azure: &configv1.AzurePlatformStatus{}}, "500", "2500"},
		"IBM, classic":        {&configv1.PlatformStatus{IBMCloud: &configv1.IBMCloudPlatformStatus{}}, "100", "1000"},
		"IBM, virtual server": {&configv1.PlatformStatus{IBMCloud: &configv1.IBMCloudPlatformStatus{ProviderType: configv1.IBMCloudProviderTypeVPC}}, "500", "2500"},
	} {
		heartbeat, election := timeouts(&configv1.Infrastructure{Status: configv1.InfrastructureStatus{PlatformStatus: test.platform}})
		if heartbeat != test.heartbeat || election != test.election {
			t.Errorf("%s: %s and %s, want %s and %s", name, heartbeat, election, test.heartbeat, test.election)
		}
	}
}

// Each pod has the environment of all nodes and reads the variables of its own (U-REN-25).
func TestOfMember(t *testing.T) {
	m := member{name: "cp-1.example.test", address: netip.MustParseAddr("fd00::1")}
	name := memberEnv(m, "IP")
	if want := "NODE_cp_1_example_test_IP"; name != want {
		t.Errorf("%s, want %s", name, want)
	}
	found := false
	for _, v := range environment([]member{m}, &configv1.Infrastructure{}, tlsSettings{version: "TLS1.3"}, "image") {
		found = found || v == corev1.EnvVar{Name: name, Value: "[fd00::1]"}
		if v.Name == "ETCD_CIPHER_SUITES" {
			t.Error("etcd takes no ciphers with TLS 1.3 only")
		}
	}
	if !found {
		t.Errorf("the environment must have %s", name)
	}
}

func TestPodKubernetes(t *testing.T) {
	s := fixture.Settings(inputs.Kubernetes, "fd00::1")
	all := []member{{name: "cp-1", address: netip.MustParseAddr("fd00::1")}}
	c := podFor(s, all, nil, tlsSettings{version: "TLS1.3"}).Spec.Containers[0]
	flags := strings.Join(c.Command, " ")
	for _, want := range []string{
		"--listen-client-urls=https://[::1]:2379,https://$(NODE_NODE_ENVVAR_NAME_IP):2379", "--listen-metrics-urls=http://[::1]:2381",
		"--initial-cluster=cp-1=https://[fd00::1]:2380", "--tls-min-version=TLS1.3",
	} {
		if !strings.Contains(flags, want) {
			t.Errorf("%s is not in %s", want, flags)
		}
	}
	if strings.Contains(flags, "--cipher-suites") {
		t.Errorf("etcd takes no ciphers with TLS 1.3 only: %s", flags)
	}
	if diff := cmp.Diff([]corev1.EnvVar{{Name: "NODE_cp_1_IP", Value: "[fd00::1]"}}, c.Env); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	fixture.CheckFlags(t, c.Command)
}
