// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

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
	const (
		secrets = "/etc/kubernetes/static-pod-certs/secrets/"
		ours    = `
  - {certFile: ` + secrets + `localhost-serving-cert-certkey/tls.crt, keyFile: ` + secrets + `localhost-serving-cert-certkey/tls.key}
  - {certFile: ` + secrets + `service-network-serving-certkey/tls.crt, keyFile: ` + secrets + `service-network-serving-certkey/tls.key}
  - {certFile: ` + secrets + `external-loadbalancer-serving-certkey/tls.crt, keyFile: ` + secrets + `external-loadbalancer-serving-certkey/tls.key}
  - {certFile: ` + secrets + `internal-loadbalancer-serving-certkey/tls.crt, keyFile: ` + secrets + `internal-loadbalancer-serving-certkey/tls.key}
  - certFile: /etc/kubernetes/static-pod-resources/secrets/localhost-recovery-serving-certkey/tls.crt
    keyFile: /etc/kubernetes/static-pod-resources/secrets/localhost-recovery-serving-certkey/tls.key`
		webhook     = `webhookTokenAuthenticator: {kubeConfig: {name: tokens}}`
		threeNodes  = `Infrastructure: {status: {controlPlaneTopology: HighlyAvailable}`
		ipv4        = `servingInfo: {bindAddress: "0.0.0.0:6443", bindNetwork: tcp4}`
		bindings    = `[authorization.openshift.io/RestrictSubjectBindings, authorization.openshift.io/ValidateRoleBindingRestriction]`
		podSecurity = `, enforce-version: latest, audit: restricted, audit-version: latest, warn: restricted, warn-version: latest}}}}}`
	)
	for _, tt := range []struct {
		name    string
		observe observer
		// YAML that is merged into the observation, and the YAML of the result.
		set, want string
		err       error
	}{
		{name: "certificates of the operator", observe: observeNamedCertificates, want: "servingInfo:\n  namedCertificates:" + ours},
		{
			name: "certificates of users", observe: observeNamedCertificates,
			set: `APIServer: {spec: {servingCerts: {namedCertificates: [{names: [api.example.test], servingCertificate: {name: one}}]}}}`,
			want: "servingInfo:\n  namedCertificates:" + ours + `
  - {certFile: ` + secrets + `user-serving-cert-000/tls.crt, keyFile: ` + secrets + `user-serving-cert-000/tls.key, names: [api.example.test]}`,
		},

		{name: "origins", observe: observeCORS, want: `corsAllowedOrigins: ['//127\.0\.0\.1(:|$)', '//localhost(:|$)']`},
		{
			name: "more origins", observe: observeCORS,
			set:  `APIServer: {spec: {additionalCORSAllowedOrigins: ['//a\.test(:|$)', '//localhost(:|$)']}}`,
			want: `corsAllowedOrigins: ['//127\.0\.0\.1(:|$)', '//a\.test(:|$)', '//localhost(:|$)']`,
		},

		{name: "no OAuth metadata", observe: observeOAuthMetadata},
		{
			name: "OAuth metadata", observe: observeOAuthMetadata, set: `Authentication: {spec: {oauthMetadata: {name: metadata}}}`,
			want: `authConfig: {oauthMetadataFile: /etc/kubernetes/static-pod-resources/configmaps/oauth-metadata/oauthMetadata}`,
		},
		{name: "OAuth metadata that no type serves", observe: observeOAuthMetadata, set: `Authentication: {spec: {type: None, oauthMetadata: {name: metadata}}}`},

		{name: "not encrypted", observe: observeEncryption},
		{
			name: "encrypted", observe: observeEncryption, set: `encrypted: true`,
			want: `apiServerArguments: {encryption-provider-config: [/etc/kubernetes/static-pod-resources/secrets/encryption-config/encryption-config]}`,
		},

		{name: "etcd", observe: observeEtcd, want: `apiServerArguments: {etcd-servers: ["https://192.168.126.10:2379", "https://localhost:2379"]}`},
		{
			name: "etcd by IPv6", observe: observeEtcd, set: `etcdEndpoints: {a: "fd00:0::10"}`,
			want: `apiServerArguments: {etcd-servers: ["https://[fd00::10]:2379", "https://localhost:2379"]}`,
		},
		{
			name: "three members", observe: observeEtcd, set: `etcdEndpoints: {a: 192.168.126.12, b: 192.168.126.10, c: 192.168.126.11}`,
			want: `apiServerArguments: {etcd-servers: ["https://192.168.126.10:2379", "https://192.168.126.11:2379", "https://192.168.126.12:2379", "https://localhost:2379"]}`,
		},
		{name: "no etcd yet", observe: observeEtcd, set: `etcdEndpoints: null`, err: ErrMissing},
		{name: "etcd by name", observe: observeEtcd, set: `etcdEndpoints: {a: cp-1}`, err: ErrInvalid},

		{name: "services", observe: observeServices, want: "servicesSubnet: 172.30.0.0/16\n" + ipv4},
		{
			name: "services by IPv6", observe: observeServices, set: `Network: {spec: {serviceNetwork: ["fd02::/112"]}}`,
			want: `{servicesSubnet: "fd02::/112", servingInfo: {bindAddress: "[::]:6443", bindNetwork: tcp6}}`,
		},
		{
			name: "services by both", observe: observeServices, set: `Network: {spec: {serviceNetwork: [172.30.0.0/16, "fd02::/112"]}}`,
			want: `{servicesSubnet: "172.30.0.0/16,fd02::/112", servingInfo: {bindAddress: "[::]:6443", bindNetwork: tcp}}`,
		},
		{
			name: "node ports", observe: observeServices, set: `Network: {spec: {serviceNodePortRange: 31000-32000}}`,
			want: "servicesSubnet: 172.30.0.0/16\napiServerArguments: {service-node-port-range: [31000-32000]}\n" + ipv4,
		},

		{
			name: "restricted endpoints", observe: observeRestrictedEndpoints,
			want: `admission: {pluginConfig: {network.openshift.io/RestrictedEndpointsAdmission: {configuration: {
  apiVersion: network.openshift.io/v1, kind: RestrictedEndpointsAdmissionConfig, restrictedCIDRs: [10.128.0.0/14, 172.30.0.0/16]}}}}`,
		},
		{
			name: "no external addresses", observe: observeExternalIPPolicy,
			want: `admission: {pluginConfig: {network.openshift.io/ExternalIPRanger: {configuration: {
  apiVersion: network.openshift.io/v1, kind: ExternalIPRangerAdmissionConfig, allowIngressIP: false}}}}`,
		},
		{
			name: "external addresses", observe: observeExternalIPPolicy,
			set: `Network: {spec: {externalIP: {policy: {allowedCIDRs: [203.0.113.0/24], rejectedCIDRs: [203.0.113.7/32]}, autoAssignCIDRs: [203.0.113.0/25]}}}`,
			want: `admission: {pluginConfig: {network.openshift.io/ExternalIPRanger: {configuration: {apiVersion: network.openshift.io/v1,
  kind: ExternalIPRangerAdmissionConfig, allowIngressIP: true, externalIPNetworkCIDRs: ["!203.0.113.7/32", 203.0.113.0/24]}}}}`,
		},

		{name: "no registry", observe: observeImagePolicy},
		{
			name: "registries", observe: observeImagePolicy, set: `Image: {spec: {externalRegistryHostnames: [images.example.test]},
  status: {internalRegistryHostname: "registry.svc:5000", externalRegistryHostnames: [default.example.test]}}`,
			want: `imagePolicyConfig: {internalRegistryHostname: "registry.svc:5000", externalRegistryHostnames: [images.example.test, default.example.test]}`,
		},

		{name: "no node selector", observe: observeNodeSelector},
		{
			name: "node selector", observe: observeNodeSelector, set: `Scheduler: {spec: {defaultNodeSelector: type=user}}`,
			want: `projectConfig: {defaultNodeSelector: type=user}`,
		},

		{
			name: "termination on one node", observe: observeTermination,
			want: `{apiServerArguments: {shutdown-delay-duration: [0s]}, gracefulTerminationDuration: "15"}`,
		},
		{name: "termination on three nodes", observe: observeTermination, set: threeNodes + `}`},
		{
			name: "termination on AWS", observe: observeTermination, set: threeNodes + `, spec: {platformSpec: {type: AWS}}}`,
			want: `{apiServerArguments: {shutdown-delay-duration: [210s]}, gracefulTerminationDuration: "275"}`,
		},
		{
			name: "connections on one node", observe: observeConnections,
			want: `apiServerArguments: {goaway-chance: ["0"], send-retry-after-while-not-ready-once: ["true"]}`,
		},
		{
			name: "connections on three nodes", observe: observeConnections, set: threeNodes + `}`,
			want: `apiServerArguments: {goaway-chance: ["0.001"], send-retry-after-while-not-ready-once: ["true"]}`,
		},

		{
			name: "issuer", observe: observeServiceAccountIssuer,
			want: `apiServerArguments: {service-account-issuer: ["https://kubernetes.default.svc"], api-audiences: ["https://kubernetes.default.svc"],
  service-account-jwks-uri: ["https://api-int.example.test:6443/openid/v1/jwks"]}`,
		},
		{
			name: "issuer of the cluster", observe: observeServiceAccountIssuer, set: `Authentication: {spec: {serviceAccountIssuer: "https://oidc.example.test"}}`,
			want: `apiServerArguments: {service-account-issuer: ["https://oidc.example.test"], api-audiences: ["https://oidc.example.test"]}`,
		},

		{name: "no webhook", observe: observeWebhookAuthenticator},
		{
			name: "webhook", observe: observeWebhookAuthenticator, set: `Authentication: {spec: {type: None, ` + webhook + `}}`,
			want: `apiServerArguments: {authentication-token-webhook-version: [v1],
  authentication-token-webhook-config-file: [/etc/kubernetes/static-pod-resources/secrets/webhook-authenticator/kubeConfig]}`,
		},
		{name: "webhook in addition to OAuth", observe: observeWebhookAuthenticator, set: `Authentication: {spec: {` + webhook + `}}`},

		{name: "no OIDC", observe: observeExternalOIDC},
		{
			name: "OIDC", observe: observeExternalOIDC, set: `Authentication: {spec: {type: OIDC}}`,
			want: `apiServerArguments: {authentication-config: [/etc/kubernetes/static-pod-resources/configmaps/auth-config/auth-config.json]}`,
		},

		{name: "no latency profile", observe: observeLatency},
		{
			name: "default latency", observe: observeLatency, set: `Node: {spec: {workerLatencyProfile: Default}}`,
			want: `apiServerArguments: {default-not-ready-toleration-seconds: ["300"], default-unreachable-toleration-seconds: ["300"]}`,
		},
		{
			name: "low latency profile", observe: observeLatency, set: `Node: {spec: {workerLatencyProfile: LowUpdateSlowReaction}}`,
			want: `apiServerArguments: {default-not-ready-toleration-seconds: ["60"], default-unreachable-toleration-seconds: ["60"]}`,
		},
		{name: "unknown latency profile", observe: observeLatency, set: `Node: {spec: {workerLatencyProfile: Fast}}`, err: ErrInvalid},

		{name: "pod security", observe: observePodSecurity, want: `admission: {pluginConfig: {PodSecurity: {configuration: {defaults: {enforce: privileged` + podSecurity},
		{
			name: "pod security enforced", observe: observePodSecurity,
			set:  `FeatureGate: {status: {featureGates: [{version: 4.21.0, enabled: [{name: OpenShiftPodSecurityAdmission}]}]}}`,
			want: `admission: {pluginConfig: {PodSecurity: {configuration: {defaults: {enforce: restricted` + podSecurity,
		},

		{name: "admission with OAuth", observe: observeAdmissionPlugins, want: `apiServerArguments: {enable-admission-plugins: ` + bindings + `}`},
		{
			name: "admission with OIDC", observe: observeAdmissionPlugins, set: `Authentication: {spec: {type: OIDC}}`,
			want: `apiServerArguments: {disable-admission-plugins: ` + bindings + `}`,
		},

		{name: "any kubelet", observe: observeMinimumKubeletVersion},
		{
			name: "no old kubelets", observe: observeMinimumKubeletVersion, set: `Node: {spec: {minimumKubeletVersion: 1.34.0}}`,
			want: `{minimumKubeletVersion: 1.34.0, apiServerArguments: {authorization-mode: [Scope, SystemMasters, RBAC, Node, MinimumKubeletVersion]}}`,
		},

		{name: "events", observe: observeEventTTL},
		{name: "events for an hour", observe: observeEventTTL, set: `eventTTLMinutes: 60`, want: `apiServerArguments: {event-ttl: [60m]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := observation{Cluster: settings(inputs.OpenShift).Cluster, Profile: inputs.OpenShift, EtcdEndpoints: map[string]string{"a": "192.168.126.10"}}
			if err := yaml.UnmarshalStrict([]byte(tt.set), &o); err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := yaml.UnmarshalStrict([]byte(tt.want), &want); err != nil {
				t.Fatal(err)
			}
			got, err := tt.observe(o)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
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
	by := map[string]int{}
	for i, config := range observed(t, s) {
		for _, field := range leaves("", config) {
			if other, taken := by[field]; taken {
				t.Errorf("%s is observed by the observers %d and %d", field, other, i)
			}
			by[field] = i
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
