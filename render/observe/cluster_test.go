// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"crypto/tls"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/observe"
)

// Ciphers that Go does not implement are left out; the default profile is Intermediate (U-REN-9).
func TestTLS(t *testing.T) {
	intermediate := []string{
		"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
		"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
		"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
		"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
	}
	custom := func(version configv1.TLSProtocolVersion, ciphers ...string) *configv1.TLSSecurityProfile {
		return &configv1.TLSSecurityProfile{Type: configv1.TLSProfileCustomType, Custom: &configv1.CustomTLSProfile{
			TLSProfileSpec: configv1.TLSProfileSpec{MinTLSVersion: version, Ciphers: ciphers}}}
	}
	for name, test := range map[string]struct {
		profile *configv1.TLSSecurityProfile
		version string
		ciphers []string
		err     error
	}{
		"none":         {nil, "VersionTLS12", intermediate, nil},
		"empty":        {&configv1.TLSSecurityProfile{}, "VersionTLS12", intermediate, nil},
		"Intermediate": {&configv1.TLSSecurityProfile{Type: configv1.TLSProfileIntermediateType}, "VersionTLS12", intermediate, nil},
		"Modern":       {&configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType}, "VersionTLS13", intermediate[:3], nil},
		"Custom": {custom(configv1.VersionTLS11, "ECDHE-RSA-AES128-SHA", "DHE-RSA-AES128-GCM-SHA256"), "VersionTLS11",
			[]string{"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"}, nil},
		"Custom without a version": {custom("", "AES128-SHA"), "VersionTLS12", []string{"TLS_RSA_WITH_AES_128_CBC_SHA"}, nil},
		"Custom, nothing known":    {custom(configv1.VersionTLS12, "DHE-RSA-AES128-GCM-SHA256"), "", nil, observe.ErrTLSProfile},
		"Custom without anything":  {&configv1.TLSSecurityProfile{Type: configv1.TLSProfileCustomType}, "", nil, observe.ErrTLSProfile},
		"unknown":                  {&configv1.TLSSecurityProfile{Type: "Ancient"}, "", nil, observe.ErrTLSProfile},
	} {
		t.Run(name, func(t *testing.T) {
			version, ciphers, err := observe.TLS(test.profile)
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if diff := cmp.Diff(test.ciphers, ciphers); version != test.version || diff != "" {
				t.Errorf("version %s, want %s; ciphers (-want +got):\n%s", version, test.version, diff)
			}
		})
	}
}

func TestTLSOld(t *testing.T) {
	_, ciphers, err := observe.TLS(&configv1.TLSSecurityProfile{Type: configv1.TLSProfileOldType})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(ciphers), len(configv1.TLSProfiles[configv1.TLSProfileOldType].Ciphers); got != want {
		t.Errorf("%d ciphers, want %d", got, want)
	}
	for _, name := range ciphers {
		if !slices.ContainsFunc(append(tls.CipherSuites(), tls.InsecureCipherSuites()...), func(c *tls.CipherSuite) bool { return c.Name == name }) {
			t.Errorf("Go has no %s", name)
		}
	}
}

// Kubernetes' programs get no feature gates of OpenShift, because they do not start with unknown ones (U-REN-10).
func TestFeatureGates(t *testing.T) {
	const release = `{version: 4.22.0, enabled: [{name: B}, {name: A}], disabled: [{name: C}]}`
	for name, test := range map[string]struct {
		profile  inputs.Profile
		releases string
		want     []string
		err      error
	}{
		"none":                           {inputs.OpenShift, `[]`, []string{}, nil},
		"of the release":                 {inputs.OpenShift, `[` + release + `]`, []string{"A=true", "B=true", "C=false"}, nil},
		"of the release, for Kubernetes": {inputs.Kubernetes, `[` + release + `]`, []string{}, nil},
		"two releases":                   {inputs.OpenShift, `[` + release + `, {version: 4.21.0}]`, nil, observe.ErrFeatureGates},
	} {
		t.Run(name, func(t *testing.T) {
			var gates configv1.FeatureGate
			if err := yaml.UnmarshalStrict([]byte(test.releases), &gates.Status.FeatureGates); err != nil {
				t.Fatal(err)
			}
			got, err := observe.FeatureGates(&gates, test.profile)
			if diff := cmp.Diff(test.want, got); diff != "" || !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v (-want +got):\n%s", err, test.err, diff)
			}
		})
	}
}

func TestFeatureGatesAt(t *testing.T) {
	s := fixture.Settings(inputs.OpenShift, "192.168.2.1")
	s.Cluster.FeatureGate.Status.FeatureGates = []configv1.FeatureGateDetails{{Enabled: []configv1.FeatureGateAttributes{{Name: "A"}}}}
	observer := observe.FeatureGatesAt(inputs.OpenShift, []string{"a"}, []string{"b", "c"})
	got, err := observer(t.Context(), fixture.Session(fixture.Store(t, fixture.Objects(s)...)), nil)
	want := map[string]any{"a": []any{"A=true"}, "b": map[string]any{"c": []any{"A=true"}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// The environment comes from the status, which has the complete noProxy.
func TestProxy(t *testing.T) {
	for name, test := range map[string]struct {
		proxy configv1.Proxy
		want  []corev1.EnvVar
	}{
		"none":          {},
		"the spec only": {proxy: configv1.Proxy{Spec: configv1.ProxySpec{HTTPProxy: "http://proxy"}}},
		"the status": {
			proxy: configv1.Proxy{Status: configv1.ProxyStatus{HTTPSProxy: "http://s", HTTPProxy: "http://p", NoProxy: ".svc"}},
			want:  []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://s"}, {Name: "HTTP_PROXY", Value: "http://p"}, {Name: "NO_PROXY", Value: ".svc"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fixture.Settings(inputs.OpenShift, "192.168.2.1")
			test.proxy.ObjectMeta = s.Cluster.Proxy.ObjectMeta
			s.Cluster.Proxy = &test.proxy
			observed, err := observe.Proxy(t.Context(), fixture.Session(fixture.Store(t, fixture.Objects(s)...)), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := observe.ProxyEnv(observed)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestTLSFlags(t *testing.T) {
	s := fixture.Settings(inputs.OpenShift, "192.168.2.1")
	s.Cluster.APIServer.Spec.TLSSecurityProfile = &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType}
	observed, err := observe.TLSProfile(t.Context(), fixture.Session(fixture.Store(t, fixture.Objects(s)...)), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := observe.TLSFlags(observed)
	want := []string{
		"--tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256", "--tls-min-version=VersionTLS13",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if none, err := observe.TLSFlags(nil); err != nil || none != nil {
		t.Errorf("without observed values there must be no flags: %v, error %v", none, err)
	}
}

func TestReadClient(t *testing.T) {
	s := fixture.Settings(inputs.OpenShift, "192.168.2.1")
	server, routes := fixture.CA(t, "server"), fixture.CA(t, "routes")
	objects := fixture.Objects(s,
		fixture.ConfigMap("openshift-config-managed", "kube-apiserver-server-ca", map[string]string{"ca-bundle.crt": server}),
		fixture.ConfigMap("openshift-config-managed", "default-ingress-cert", map[string]string{"ca-bundle.crt": routes}),
		fixture.Secret("ns", "serving-cert", map[string][]byte{"tls.crt": {1}}))
	st := fixture.Store(t, objects...)
	for namespace, serving := range map[string]bool{"ns": true, "other": false} {
		got, err := observe.ReadClientConfig(t.Context(), fixture.Session(st), librarygo.KubeScheduler, namespace)
		if err != nil || got.Serving != serving || got.ServiceAccountCA != server+routes {
			t.Errorf("%s: serving %t, want %t, error %v, bundle:\n%s", namespace, got.Serving, serving, err, got.ServiceAccountCA)
		}
	}
}
