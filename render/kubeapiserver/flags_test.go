// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/observe"
)

func keyFile(string) ([]string, error) {
	return []string{"service-account-001.pub", "service-account-002.pub"}, nil
}

func TestFlags(t *testing.T) {
	type object = map[string]any
	for _, tt := range []struct {
		name      string
		config    object
		want      []string
		admission string
		fault     string
	}{
		{name: "nothing", config: object{"apiVersion": "v1", "kind": "KubeAPIServerConfig"}},
		{name: "an argument", config: argument("event-ttl", "3h"), want: []string{"--event-ttl=3h"}},
		{
			name: "several values", config: argument("service-account-issuer", "https://new.test", "https://old.test"),
			want: []string{"--service-account-issuer=https://new.test", "--service-account-issuer=https://old.test"},
		},
		{name: "servers", config: argument("etcd-servers", "https://a:2379", "https://b:2379"), want: []string{"--etcd-servers=https://a:2379,https://b:2379"}},
		{name: "authorizers", config: argument("authorization-mode", "Scope", "SystemMasters", "RBAC", "Node"), want: []string{"--authorization-mode=RBAC,Node"}},
		{
			name: "admission plugins", config: argument("enable-admission-plugins", "NodeRestriction", "image.openshift.io/ImagePolicy", "Priority"),
			want: []string{"--enable-admission-plugins=NodeRestriction,Priority"},
		},
		{name: "admission plugins of OpenShift alone", config: argument("disable-admission-plugins", "image.openshift.io/ImagePolicy")},
		{name: "an argument of OpenShift", config: argument("send-retry-after-while-not-ready-once", "true")},
		{name: "an unknown argument", config: argument("enable-swagger-ui", "true"), fault: "apiServerArguments.enable-swagger-ui"},
		{
			name: "serving", config: object{"servingInfo": object{
				"bindAddress": "[::]:6443", "bindNetwork": "tcp6", "minTLSVersion": "VersionTLS12", "cipherSuites": []any{"A", "B"},
				"namedCertificates": []any{certificate("/a"), object{"certFile": "/b.crt", "keyFile": "/b.key", "names": []any{"b.test", "*.b.test"}}},
			}},
			want: []string{
				"--bind-address=::", "--secure-port=6443", "--tls-cipher-suites=A,B", "--tls-min-version=VersionTLS12",
				"--tls-sni-cert-key=/a/tls.crt,/a/tls.key", "--tls-sni-cert-key=/b.crt,/b.key:b.test,*.b.test",
			},
		},
		{name: "serving without a port", config: object{"servingInfo": object{"bindAddress": "0.0.0.0"}}, fault: "servingInfo.bindAddress"},
		{name: "another field of serving", config: object{"servingInfo": object{"requestTimeoutSeconds": int64(5)}}, fault: "servingInfo.requestTimeoutSeconds"},
		{
			name: "origins", config: object{"corsAllowedOrigins": []any{`//localhost(:|$)`, `//a{1,2}\.test$`}},
			want: []string{`--cors-allowed-origins=//localhost(:|$)`, `--cors-allowed-origins="//a{1,2}\.test$"`},
		},
		{name: "services", config: object{"servicesSubnet": "172.30.0.0/16"}, want: []string{"--service-cluster-ip-range=172.30.0.0/16"}},
		{
			name: "keys", config: object{"serviceAccountPublicKeyFiles": []any{"/k"}},
			want: []string{"--service-account-key-file=/k/service-account-001.pub", "--service-account-key-file=/k/service-account-002.pub"},
		},
		{
			name: "plugins with a configuration", config: observe.Merge(plugin("network.openshift.io/ExternalIPRanger", object{"kind": "A"}), plugin("PodSecurity", object{"kind": "B"})),
			want:      []string{"--admission-control-config-file=/etc/kubernetes/static-pod-resources/configmaps/config/admission.yaml"},
			admission: "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- configuration:\n    kind: B\n  name: PodSecurity\n",
		},
		{name: "plugins of OpenShift alone", config: plugin("network.openshift.io/ExternalIPRanger", object{"kind": "A"})},
		{name: "another plugin", config: plugin("EventRateLimit", object{"kind": "A"}), fault: "admission.pluginConfig.EventRateLimit"},
		{
			name: "fields of OpenShift", config: object{
				"imagePolicyConfig": object{"internalRegistryHostname": "a"}, "projectConfig": object{"defaultNodeSelector": "a"},
				"authConfig": object{"oauthMetadataFile": "/a"}, "minimumKubeletVersion": "1.34.0",
			},
		},
		{name: "another field", config: object{"consolePublicURL": "https://console.test"}, fault: "consolePublicURL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			flags, admission, err := Flags(tt.config, keyFile)
			if tt.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fault) {
					t.Errorf("error %v, want one that names %s", err, tt.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, flags); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.admission, admission); diff != "" {
				t.Errorf("admission (-want +got):\n%s", diff)
			}
		})
	}
	_, _, err := Flags(map[string]any{"serviceAccountPublicKeyFiles": []any{"/k"}}, func(string) ([]string, error) { return nil, ErrMissing })
	if !errors.Is(err, ErrMissing) {
		t.Errorf("no keys: %v", err)
	}
}

// everything returns settings with every field that the upstream kube-apiserver has a flag for.
func everything(kind configv1.AuthenticationType) *inputs.Settings {
	s := settings(inputs.Kubernetes)
	c := s.Cluster
	c.Network.Spec.ServiceNetwork = []string{"172.30.0.0/16", "fd02::/112"}
	c.Network.Spec.ServiceNodePortRange = "31000-32000"
	c.Node.Spec.WorkerLatencyProfile = configv1.LowUpdateSlowReaction
	c.APIServer.Spec.TLSSecurityProfile = &configv1.TLSSecurityProfile{Type: configv1.TLSProfileOldType}
	c.APIServer.Spec.AdditionalCORSAllowedOrigins = []string{`//a\.test(:|$)`}
	c.APIServer.Spec.ServingCerts.NamedCertificates = []configv1.APIServerNamedServingCert{{
		Names: []string{"a.test", "*.a.test"}, ServingCertificate: configv1.SecretNameReference{Name: "a"},
	}}
	c.Authentication.Spec.Type = kind
	if kind == configv1.AuthenticationTypeNone {
		c.Authentication.Spec.WebhookTokenAuthenticator = &configv1.WebhookTokenAuthenticator{KubeConfig: configv1.SecretNameReference{Name: "tokens"}}
	}
	return s
}

func TestFlagsAreKnown(t *testing.T) {
	for name, s := range map[string]*inputs.Settings{
		"one node": settings(inputs.Kubernetes), "webhook": everything(configv1.AuthenticationTypeNone), "OIDC": everything(configv1.AuthenticationTypeOIDC),
	} {
		t.Run(name, func(t *testing.T) {
			config, err := mergeConfig(observe.Merge(observed(t, s)...))
			if err != nil {
				t.Fatal(err)
			}
			flags, _, err := Flags(config, keyFile)
			if err != nil {
				t.Fatal(err)
			}
			fixture.CheckFlags(t, append([]string{"kube-apiserver"}, flags...))
		})
	}
}
