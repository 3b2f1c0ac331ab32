// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/inputs"
)

const goodWebhook = `apiVersion: v1
kind: Config
current-context: webhook
clusters: [{name: webhook, cluster: {server: "https://tokens.example.test"}}]
users: [{name: kube-apiserver, user: {token: t}}]
contexts: [{name: webhook, context: {cluster: webhook, user: kube-apiserver}}]
`

func certificate(folder string) map[string]any {
	return map[string]any{"certFile": folder + "/tls.crt", "keyFile": folder + "/tls.key"}
}

// R-REN-2, R-REN-11, R-REN-12.
func TestObservers(t *testing.T) {
	type object = map[string]any
	args := func(of object) object { return object{"apiServerArguments": of} }
	ours := []any{
		certificate("/etc/kubernetes/static-pod-certs/secrets/localhost-serving-cert-certkey"),
		certificate("/etc/kubernetes/static-pod-certs/secrets/service-network-serving-certkey"),
		certificate("/etc/kubernetes/static-pod-certs/secrets/external-loadbalancer-serving-certkey"),
		certificate("/etc/kubernetes/static-pod-certs/secrets/internal-loadbalancer-serving-certkey"),
		certificate("/etc/kubernetes/static-pod-resources/secrets/localhost-recovery-serving-certkey"),
	}
	podSecurity := func(enforce string) object {
		return plugin("PodSecurity", object{"defaults": object{
			"enforce": enforce, "enforce-version": "latest", "audit": "restricted", "audit-version": "latest",
			"warn": "restricted", "warn-version": "latest",
		}})
	}
	named := func(names []string, secrets ...string) func(*observation) {
		return func(o *observation) {
			for _, secret := range secrets {
				o.cluster.APIServer.Spec.ServingCerts.NamedCertificates = append(o.cluster.APIServer.Spec.ServingCerts.NamedCertificates,
					configv1.APIServerNamedServingCert{Names: names, ServingCertificate: configv1.SecretNameReference{Name: secret}})
			}
		}
	}
	webhook := func(kind configv1.AuthenticationType, kubeconfig string) func(*observation) {
		return func(o *observation) {
			o.cluster.Authentication.Spec.Type = kind
			o.cluster.Authentication.Spec.WebhookTokenAuthenticator = &configv1.WebhookTokenAuthenticator{KubeConfig: configv1.SecretNameReference{Name: "tokens"}}
			o.webhook = []byte(kubeconfig)
		}
	}
	gates := func(enabled ...configv1.FeatureGateName) func(*observation) {
		return func(o *observation) {
			details := configv1.FeatureGateDetails{Version: "4.21.0", Disabled: []configv1.FeatureGateAttributes{{Name: "Off"}}}
			for _, name := range enabled {
				details.Enabled = append(details.Enabled, configv1.FeatureGateAttributes{Name: name})
			}
			o.cluster.FeatureGate.Status.FeatureGates = []configv1.FeatureGateDetails{details}
		}
	}
	in := func(changes ...func(*observation)) func(*observation) {
		return func(o *observation) {
			for _, change := range changes {
				change(o)
			}
		}
	}
	plain := func(o *observation) { o.profile = inputs.Kubernetes }

	for _, tt := range []struct {
		name    string
		observe observer
		change  func(*observation)
		want    object
		err     error
	}{
		{name: "certificates of the operator", observe: observeNamedCertificates, want: object{"servingInfo": object{"namedCertificates": ours}}},
		{
			name: "certificates of users", observe: observeNamedCertificates, change: named([]string{"api.example.test"}, "one"),
			want: object{"servingInfo": object{"namedCertificates": append(append([]any{}, ours...), object{
				"certFile": "/etc/kubernetes/static-pod-certs/secrets/user-serving-cert-000/tls.crt",
				"keyFile":  "/etc/kubernetes/static-pod-certs/secrets/user-serving-cert-000/tls.key", "names": []any{"api.example.test"},
			})}},
		},
		{name: "eleven certificates of users", observe: observeNamedCertificates, change: named(nil, "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"), err: ErrInvalid},
		{name: "a certificate without a Secret", observe: observeNamedCertificates, change: named(nil, ""), err: ErrMissing},

		{name: "origins", observe: observeCORS, want: object{"corsAllowedOrigins": []any{`//127\.0\.0\.1(:|$)`, `//localhost(:|$)`}}},
		{
			name: "more origins", observe: observeCORS,
			change: func(o *observation) {
				o.cluster.APIServer.Spec.AdditionalCORSAllowedOrigins = []string{`//a\.test(:|$)`, `//localhost(:|$)`}
			},
			want: object{"corsAllowedOrigins": []any{`//127\.0\.0\.1(:|$)`, `//a\.test(:|$)`, `//localhost(:|$)`}},
		},

		{
			name: "TLS 1.3 only", observe: observeTLS,
			change: func(o *observation) {
				o.cluster.APIServer.Spec.TLSSecurityProfile = &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType}
			},
			want: object{"servingInfo": object{"minTLSVersion": "VersionTLS13", "cipherSuites": []any{
				"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
			}}},
		},

		{name: "no OAuth metadata", observe: observeOAuthMetadata},
		{
			name: "OAuth metadata", observe: observeOAuthMetadata,
			change: func(o *observation) { o.cluster.Authentication.Spec.OAuthMetadata.Name = "metadata" },
			want: object{"authConfig": object{
				"oauthMetadataFile": "/etc/kubernetes/static-pod-resources/configmaps/oauth-metadata/oauthMetadata",
			}},
		},
		{
			name: "OAuth metadata that no type serves", observe: observeOAuthMetadata,
			change: func(o *observation) {
				o.cluster.Authentication.Spec.OAuthMetadata.Name = "metadata"
				o.cluster.Authentication.Spec.Type = configv1.AuthenticationTypeNone
			},
		},

		{name: "not encrypted", observe: observeEncryption},
		{
			name: "encrypted", observe: observeEncryption, change: func(o *observation) { o.encrypted = true },
			want: args(object{"encryption-provider-config": []any{"/etc/kubernetes/static-pod-resources/secrets/encryption-config/encryption-config"}}),
		},

		{name: "etcd", observe: observeEtcd, want: args(object{"etcd-servers": []any{"https://192.168.126.10:2379", "https://localhost:2379"}})},
		{
			name: "etcd by IPv6", observe: observeEtcd, change: func(o *observation) { o.etcdEndpoints = map[string]string{"a": "fd00:0::10"} },
			want: args(object{"etcd-servers": []any{"https://[fd00::10]:2379", "https://localhost:2379"}}),
		},
		{
			name: "three members", observe: observeEtcd,
			change: func(o *observation) {
				o.etcdEndpoints = map[string]string{"a": "192.168.126.12", "b": "192.168.126.10", "c": "192.168.126.11"}
			},
			want: args(object{"etcd-servers": []any{
				"https://192.168.126.10:2379", "https://192.168.126.11:2379", "https://192.168.126.12:2379", "https://localhost:2379",
			}}),
		},
		{name: "no etcd yet", observe: observeEtcd, change: func(o *observation) { o.etcdEndpoints = nil }, err: ErrMissing},
		{name: "etcd by name", observe: observeEtcd, change: func(o *observation) { o.etcdEndpoints = map[string]string{"a": "cp-1"} }, err: ErrInvalid},

		{name: "no feature gates", observe: observeFeatureGates},
		{name: "feature gates", observe: observeFeatureGates, change: gates("On"), want: args(object{"feature-gates": []any{"Off=false", "On=true"}})},
		{name: "feature gates of OpenShift for the plain kube-apiserver", observe: observeFeatureGates, change: in(plain, gates("On"))},

		{
			name: "services", observe: observeServices,
			want: object{"servicesSubnet": "172.30.0.0/16", "servingInfo": object{"bindAddress": "0.0.0.0:6443", "bindNetwork": "tcp4"}},
		},
		{
			name: "services by IPv6", observe: observeServices,
			change: func(o *observation) { o.cluster.Network.Spec.ServiceNetwork = []string{"fd02::/112"} },
			want:   object{"servicesSubnet": "fd02::/112", "servingInfo": object{"bindAddress": "[::]:6443", "bindNetwork": "tcp6"}},
		},
		{
			name: "services by both", observe: observeServices,
			change: func(o *observation) { o.cluster.Network.Spec.ServiceNetwork = []string{"172.30.0.0/16", "fd02::/112"} },
			want:   object{"servicesSubnet": "172.30.0.0/16,fd02::/112", "servingInfo": object{"bindAddress": "[::]:6443", "bindNetwork": "tcp"}},
		},
		{
			name: "node ports", observe: observeServices,
			change: func(o *observation) { o.cluster.Network.Spec.ServiceNodePortRange = "31000-32000" },
			want: object{
				"servicesSubnet": "172.30.0.0/16", "servingInfo": object{"bindAddress": "0.0.0.0:6443", "bindNetwork": "tcp4"},
				"apiServerArguments": object{"service-node-port-range": []any{"31000-32000"}},
			},
		},
		{name: "no services", observe: observeServices, change: func(o *observation) { o.cluster.Network.Spec.ServiceNetwork = nil }, err: ErrMissing},

		{
			name: "restricted endpoints", observe: observeRestrictedEndpoints,
			want: plugin("network.openshift.io/RestrictedEndpointsAdmission", object{
				"apiVersion": "network.openshift.io/v1", "kind": "RestrictedEndpointsAdmissionConfig", "restrictedCIDRs": []any{"10.128.0.0/14", "172.30.0.0/16"},
			}),
		},
		{
			name: "no external addresses", observe: observeExternalIPPolicy,
			want: plugin("network.openshift.io/ExternalIPRanger", object{
				"apiVersion": "network.openshift.io/v1", "kind": "ExternalIPRangerAdmissionConfig", "allowIngressIP": false,
			}),
		},
		{
			name: "external addresses", observe: observeExternalIPPolicy,
			change: func(o *observation) {
				o.cluster.Network.Spec.ExternalIP = &configv1.ExternalIPConfig{
					Policy:          &configv1.ExternalIPPolicy{AllowedCIDRs: []string{"203.0.113.0/24"}, RejectedCIDRs: []string{"203.0.113.7/32"}},
					AutoAssignCIDRs: []string{"203.0.113.0/25"},
				}
			},
			want: plugin("network.openshift.io/ExternalIPRanger", object{
				"apiVersion": "network.openshift.io/v1", "kind": "ExternalIPRangerAdmissionConfig", "allowIngressIP": true,
				"externalIPNetworkCIDRs": []any{"!203.0.113.7/32", "203.0.113.0/24"},
			}),
		},

		{name: "no proxy", observe: observeProxy},
		{
			name: "proxy", observe: observeProxy,
			change: func(o *observation) {
				o.cluster.Proxy.Status = configv1.ProxyStatus{HTTPSProxy: "http://proxy.test:3128", NoProxy: ".svc"}
			},
			want: object{"targetconfigcontroller": object{"proxy": object{"HTTPS_PROXY": "http://proxy.test:3128", "NO_PROXY": ".svc"}}},
		},

		{name: "no registry", observe: observeImagePolicy},
		{
			name: "registries", observe: observeImagePolicy,
			change: func(o *observation) {
				o.cluster.Image.Spec.ExternalRegistryHostnames = []string{"images.example.test"}
				o.cluster.Image.Status = configv1.ImageStatus{InternalRegistryHostname: "registry.svc:5000", ExternalRegistryHostnames: []string{"default.example.test"}}
			},
			want: object{"imagePolicyConfig": object{
				"internalRegistryHostname": "registry.svc:5000", "externalRegistryHostnames": []any{"images.example.test", "default.example.test"},
			}},
		},

		{name: "no node selector", observe: observeNodeSelector},
		{
			name: "node selector", observe: observeNodeSelector, change: func(o *observation) { o.cluster.Scheduler.Spec.DefaultNodeSelector = "type=user" },
			want: object{"projectConfig": object{"defaultNodeSelector": "type=user"}},
		},

		{
			name: "termination on one node", observe: observeTermination,
			want: object{"apiServerArguments": object{"shutdown-delay-duration": []any{"0s"}}, "gracefulTerminationDuration": "15"},
		},
		{
			name: "termination on three nodes", observe: observeTermination,
			change: func(o *observation) {
				o.cluster.Infrastructure.Status.ControlPlaneTopology = configv1.HighlyAvailableTopologyMode
			},
		},
		{
			name: "termination on AWS", observe: observeTermination,
			change: func(o *observation) {
				o.cluster.Infrastructure.Status.ControlPlaneTopology = configv1.HighlyAvailableTopologyMode
				o.cluster.Infrastructure.Spec.PlatformSpec.Type = configv1.AWSPlatformType
			},
			want: object{"apiServerArguments": object{"shutdown-delay-duration": []any{"210s"}}, "gracefulTerminationDuration": "275"},
		},
		{
			name: "connections on one node", observe: observeConnections,
			want: args(object{"goaway-chance": []any{"0"}, "send-retry-after-while-not-ready-once": []any{"true"}}),
		},
		{
			name: "connections on three nodes", observe: observeConnections,
			change: func(o *observation) {
				o.cluster.Infrastructure.Status.ControlPlaneTopology = configv1.HighlyAvailableTopologyMode
			},
			want: args(object{"goaway-chance": []any{"0.001"}, "send-retry-after-while-not-ready-once": []any{"true"}}),
		},

		{
			name: "issuer", observe: observeServiceAccountIssuer,
			want: args(object{
				"service-account-issuer": []any{"https://kubernetes.default.svc"}, "api-audiences": []any{"https://kubernetes.default.svc"},
				"service-account-jwks-uri": []any{"https://api-int.example.test:6443/openid/v1/jwks"},
			}),
		},
		{
			name: "issuer of the cluster", observe: observeServiceAccountIssuer,
			change: func(o *observation) { o.cluster.Authentication.Spec.ServiceAccountIssuer = "https://oidc.example.test" },
			want:   args(object{"service-account-issuer": []any{"https://oidc.example.test"}, "api-audiences": []any{"https://oidc.example.test"}}),
		},
		{
			name: "issuer that is no URL", observe: observeServiceAccountIssuer,
			change: func(o *observation) { o.cluster.Authentication.Spec.ServiceAccountIssuer = "https://[oidc" }, err: ErrInvalid,
		},
		{
			name: "issuer without a place for keys", observe: observeServiceAccountIssuer,
			change: func(o *observation) { o.cluster.Infrastructure.Status.APIServerInternalURL = "" }, err: ErrMissing,
		},

		{name: "no webhook", observe: observeWebhookAuthenticator},
		{
			name: "webhook", observe: observeWebhookAuthenticator, change: webhook(configv1.AuthenticationTypeNone, goodWebhook),
			want: args(object{
				"authentication-token-webhook-config-file": []any{"/etc/kubernetes/static-pod-resources/secrets/webhook-authenticator/kubeConfig"},
				"authentication-token-webhook-version":     []any{"v1"},
			}),
		},
		{name: "webhook in addition to OAuth", observe: observeWebhookAuthenticator, change: webhook("", goodWebhook)},
		{name: "webhook without its Secret", observe: observeWebhookAuthenticator, change: webhook(configv1.AuthenticationTypeNone, ""), err: ErrMissing},
		{
			name: "webhook whose token is in a file", observe: observeWebhookAuthenticator,
			change: webhook(configv1.AuthenticationTypeNone, `{"current-context":"a","clusters":[{"name":"a","cluster":{"server":"https://a"}}],`+
				`"users":[{"name":"a","user":{"tokenFile":"/token"}}],"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}]}`),
			err: ErrInvalid,
		},
		{name: "webhook without a context", observe: observeWebhookAuthenticator, change: webhook(configv1.AuthenticationTypeNone, "kind: Config"), err: ErrInvalid},

		{name: "no OIDC", observe: observeExternalOIDC},
		{
			name: "OIDC", observe: observeExternalOIDC, change: func(o *observation) { o.cluster.Authentication.Spec.Type = configv1.AuthenticationTypeOIDC },
			want: args(object{"authentication-config": []any{"/etc/kubernetes/static-pod-resources/configmaps/auth-config/auth-config.json"}}),
		},

		{name: "no latency profile", observe: observeLatency},
		{
			name: "default latency", observe: observeLatency,
			change: func(o *observation) { o.cluster.Node.Spec.WorkerLatencyProfile = configv1.DefaultUpdateDefaultReaction },
			want:   args(object{"default-not-ready-toleration-seconds": []any{"300"}, "default-unreachable-toleration-seconds": []any{"300"}}),
		},
		{
			name: "low latency profile", observe: observeLatency,
			change: func(o *observation) { o.cluster.Node.Spec.WorkerLatencyProfile = configv1.LowUpdateSlowReaction },
			want:   args(object{"default-not-ready-toleration-seconds": []any{"60"}, "default-unreachable-toleration-seconds": []any{"60"}}),
		},
		{name: "unknown latency profile", observe: observeLatency, change: func(o *observation) { o.cluster.Node.Spec.WorkerLatencyProfile = "Fast" }, err: ErrInvalid},

		{name: "pod security", observe: observePodSecurity, want: podSecurity("privileged")},
		{name: "pod security enforced", observe: observePodSecurity, change: gates("OpenShiftPodSecurityAdmission"), want: podSecurity("restricted")},

		{
			name: "admission with OAuth", observe: observeAdmissionPlugins,
			want: args(object{"enable-admission-plugins": []any{
				"authorization.openshift.io/RestrictSubjectBindings", "authorization.openshift.io/ValidateRoleBindingRestriction",
			}}),
		},
		{
			name: "admission with OIDC", observe: observeAdmissionPlugins,
			change: func(o *observation) { o.cluster.Authentication.Spec.Type = configv1.AuthenticationTypeOIDC },
			want: args(object{"disable-admission-plugins": []any{
				"authorization.openshift.io/RestrictSubjectBindings", "authorization.openshift.io/ValidateRoleBindingRestriction",
			}}),
		},

		{name: "any kubelet", observe: observeMinimumKubeletVersion},
		{
			name: "no old kubelets", observe: observeMinimumKubeletVersion, change: func(o *observation) { o.cluster.Node.Spec.MinimumKubeletVersion = "1.34.0" },
			want: object{
				"minimumKubeletVersion": "1.34.0",
				"apiServerArguments":    object{"authorization-mode": []any{"Scope", "SystemMasters", "RBAC", "Node", "MinimumKubeletVersion"}},
			},
		},

		{name: "events", observe: observeEventTTL},
		{name: "events for an hour", observe: observeEventTTL, change: func(o *observation) { o.eventTTLMinutes = 60 }, want: args(object{"event-ttl": []any{"60m"}})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := observation{
				cluster: settings(inputs.OpenShift).Cluster, profile: inputs.OpenShift,
				etcdEndpoints: map[string]string{"MTkyLjE2OC4xMjYuMTA": "192.168.126.10"},
			}
			if tt.change != nil {
				tt.change(&o)
			}
			got, err := tt.observe(o)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// No field is set by two observers, because library-go merges them in random order.
func TestObserversDoNotOverlap(t *testing.T) {
	s := settings(inputs.OpenShift)
	s.Cluster.Network.Spec.ServiceNodePortRange = "31000-32000"
	s.Cluster.Node.Spec.WorkerLatencyProfile = configv1.LowUpdateSlowReaction
	s.Cluster.Node.Spec.MinimumKubeletVersion = "1.34.0"
	s.Cluster.Scheduler.Spec.DefaultNodeSelector = "type=user"
	o := observation{cluster: s.Cluster, profile: s.Profile, encrypted: true, eventTTLMinutes: 60, etcdEndpoints: map[string]string{"a": "192.168.126.10"}}
	by := map[string]string{}
	for _, observer := range observers {
		config, err := observer.observe(o)
		if err != nil {
			t.Fatalf("%s: %v", observer.name, err)
		}
		for _, field := range leaves("", config) {
			if other, taken := by[field]; taken {
				t.Errorf("%s is observed by %q and by %q", field, other, observer.name)
			}
			by[field] = observer.name
		}
	}
	if len(by) < 20 {
		t.Errorf("only %d fields were observed: %v", len(by), by)
	}
}

func leaves(path string, value any) []string {
	object, is := value.(map[string]any)
	if !is {
		return []string{path}
	}
	var found []string
	for key, below := range object {
		found = append(found, leaves(path+"."+key, below)...)
	}
	return found
}
