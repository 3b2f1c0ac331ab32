// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/observe"
)

// ErrInvalid is returned for a value with which kube-apiserver would not start.
var ErrInvalid = errors.New("invalid")

// observation is the input of the observers, which are pure functions.
type observation struct {
	cluster *inputs.Cluster
	profile inputs.Profile
	// etcdEndpoints are the data of the ConfigMap openshift-etcd/etcd-endpoints.
	etcdEndpoints map[string]string
	encrypted     bool
	// webhook is the kubeconfig of the configured token authenticator, or nil if its Secret is missing.
	webhook         []byte
	eventTTLMinutes int32
}

// observer returns a part of KubeAPIServerConfig as decoded JSON, or nil for the default.
type observer func(observation) (map[string]any, error)

// observers are in the order of merging. No two set the same field.
var observers = []struct {
	name    string
	observe observer
}{
	{"named certificates", observeNamedCertificates},
	{"CORS", observeCORS},
	{"TLS", observeTLS},
	{"OAuth metadata", observeOAuthMetadata},
	{"encryption", observeEncryption},
	{"etcd", observeEtcd},
	{"feature gates", observeFeatureGates},
	{"services", observeServices},
	{"restricted endpoints", observeRestrictedEndpoints},
	{"external addresses", observeExternalIPPolicy},
	{"proxy", observeProxy},
	{"image policy", observeImagePolicy},
	{"node selector", observeNodeSelector},
	{"termination", observeTermination},
	{"connections", observeConnections},
	{"service account issuer", observeServiceAccountIssuer},
	{"webhook authenticator", observeWebhookAuthenticator},
	{"external OIDC", observeExternalOIDC},
	{"latency", observeLatency},
	{"pod security", observePodSecurity},
	{"admission plugins", observeAdmissionPlugins},
	{"kubelet version", observeMinimumKubeletVersion},
	{"event TTL", observeEventTTL},
}

func argument(name string, values ...string) map[string]any {
	return arguments(map[string][]string{name: values})
}

func arguments(values map[string][]string) map[string]any {
	set := map[string]any{}
	for name := range values {
		set[name] = list(values[name])
	}
	return map[string]any{"apiServerArguments": set}
}

func list(values []string) []any {
	items := make([]any, len(values))
	for i := range values {
		items[i] = values[i]
	}
	return items
}

// servingCertificates are those of the first step. The last one is revisioned, for use when the others have expired.
var servingCertificates = []string{
	unrevisioned("secrets", "localhost-serving-cert-certkey", ""),
	unrevisioned("secrets", "service-network-serving-certkey", ""),
	unrevisioned("secrets", "external-loadbalancer-serving-certkey", ""),
	unrevisioned("secrets", "internal-loadbalancer-serving-certkey", ""),
	revisioned("secrets", "localhost-recovery-serving-certkey", ""),
}

const maxNamedCertificates = 10

func userServingCertificate(i int) string { return fmt.Sprintf("user-serving-cert-%03d", i) }

func observeNamedCertificates(o observation) (map[string]any, error) {
	var certificates []any
	for _, folder := range servingCertificates {
		certificates = append(certificates, map[string]any{"certFile": folder + "tls.crt", "keyFile": folder + "tls.key"})
	}
	named := o.cluster.APIServer.Spec.ServingCerts.NamedCertificates
	if len(named) > maxNamedCertificates {
		return nil, fmt.Errorf("apiserver.config.openshift.io %q: spec.servingCerts.namedCertificates: %w: %d entries, at most %d are possible",
			o.cluster.APIServer.Name, ErrInvalid, len(named), maxNamedCertificates)
	}
	for i, certificate := range named {
		if certificate.ServingCertificate.Name == "" {
			return nil, fmt.Errorf("apiserver.config.openshift.io %q: spec.servingCerts.namedCertificates[%d].servingCertificate.name: %w: name a Secret in %s",
				o.cluster.APIServer.Name, i, ErrMissing, configNamespace)
		}
		folder := unrevisioned("secrets", userServingCertificate(i), "")
		entry := map[string]any{"certFile": folder + "tls.crt", "keyFile": folder + "tls.key"}
		if len(certificate.Names) > 0 {
			entry["names"] = list(certificate.Names)
		}
		certificates = append(certificates, entry)
	}
	return map[string]any{"servingInfo": map[string]any{"namedCertificates": certificates}}, nil
}

func observeCORS(o observation) (map[string]any, error) {
	origins := append([]string{`//127\.0\.0\.1(:|$)`, `//localhost(:|$)`}, o.cluster.APIServer.Spec.AdditionalCORSAllowedOrigins...)
	slices.Sort(origins)
	return map[string]any{"corsAllowedOrigins": list(slices.Compact(origins))}, nil
}

func observeOAuthMetadata(o observation) (map[string]any, error) {
	if _, found := oauthMetadata(o.cluster.Authentication); !found {
		return nil, nil
	}
	return map[string]any{"authConfig": map[string]any{"oauthMetadataFile": revisioned("configmaps", "oauth-metadata", "oauthMetadata")}}, nil
}

func observeEncryption(o observation) (map[string]any, error) {
	if !o.encrypted {
		return nil, nil
	}
	return argument("encryption-provider-config", revisioned("secrets", "encryption-config", "encryption-config")), nil
}

// observeEtcd returns the endpoints that etcd's loops have written.
func observeEtcd(o observation) (map[string]any, error) {
	servers := []string{"https://localhost:2379"}
	for name, address := range o.etcdEndpoints {
		ip, err := netip.ParseAddr(address)
		if err != nil {
			return nil, fmt.Errorf("configmap %s/etcd-endpoints: %s: %w: %q is not an address", etcdNamespace, name, ErrInvalid, address)
		}
		servers = append(servers, "https://"+net.JoinHostPort(ip.String(), "2379"))
	}
	if len(servers) == 1 {
		return nil, fmt.Errorf("configmap %s/etcd-endpoints: %w: run etcd's loops first", etcdNamespace, ErrMissing)
	}
	slices.Sort(servers)
	return argument("etcd-servers", servers...), nil
}

// observeFeatureGates returns the feature gates of the release; the upstream kube-apiserver gets none.
func observeFeatureGates(o observation) (map[string]any, error) {
	gates, err := observe.FeatureGates(o.cluster.FeatureGate, o.profile)
	if err != nil || len(gates) == 0 {
		return nil, err
	}
	return argument("feature-gates", gates...), nil
}

func observeTLS(o observation) (map[string]any, error) {
	version, suites, err := observe.TLS(o.cluster.APIServer.Spec.TLSSecurityProfile)
	if err != nil {
		return nil, err
	}
	return map[string]any{"servingInfo": map[string]any{"minTLSVersion": version, "cipherSuites": list(suites)}}, nil
}

func observeServices(o observation) (map[string]any, error) {
	ranges := serviceNetwork(o.cluster.Network)
	if len(ranges) == 0 {
		return nil, fmt.Errorf("network.config.openshift.io %q: spec.serviceNetwork: %w", o.cluster.Network.Name, ErrMissing)
	}
	serving := map[string]any{"bindAddress": "0.0.0.0:6443", "bindNetwork": "tcp4"}
	switch {
	case isIPv6(ranges[0]):
		serving = map[string]any{"bindAddress": "[::]:6443", "bindNetwork": "tcp6"}
	case len(ranges) > 1:
		serving = map[string]any{"bindAddress": "[::]:6443", "bindNetwork": "tcp"}
	}
	part := map[string]any{"servicesSubnet": strings.Join(ranges, ","), "servingInfo": serving}
	if nodePorts := o.cluster.Network.Spec.ServiceNodePortRange; nodePorts != "" {
		part = observe.Merge(part, argument("service-node-port-range", nodePorts))
	}
	return part, nil
}

func plugin(name string, configuration map[string]any) map[string]any {
	return map[string]any{"admission": map[string]any{"pluginConfig": map[string]any{name: map[string]any{"configuration": configuration}}}}
}

// restrictedEndpoints is the admission plugin that the operator requires a configuration for (U-REN-7).
const restrictedEndpoints = "network.openshift.io/RestrictedEndpointsAdmission"

func observeRestrictedEndpoints(o observation) (map[string]any, error) {
	ranges := append(clusterNetwork(o.cluster.Network), serviceNetwork(o.cluster.Network)...)
	return plugin(restrictedEndpoints, map[string]any{
		"apiVersion": "network.openshift.io/v1", "kind": "RestrictedEndpointsAdmissionConfig", "restrictedCIDRs": list(ranges),
	}), nil
}

func observeExternalIPPolicy(o observation) (map[string]any, error) {
	configuration := map[string]any{"apiVersion": "network.openshift.io/v1", "kind": "ExternalIPRangerAdmissionConfig", "allowIngressIP": false}
	if external := o.cluster.Network.Spec.ExternalIP; external != nil {
		configuration["allowIngressIP"] = len(external.AutoAssignCIDRs) > 0
		if external.Policy != nil {
			var ranges []string
			for _, cidr := range external.Policy.RejectedCIDRs {
				ranges = append(ranges, "!"+cidr)
			}
			if ranges = append(ranges, external.Policy.AllowedCIDRs...); len(ranges) > 0 {
				configuration["externalIPNetworkCIDRs"] = list(ranges)
			}
		}
	}
	return plugin("network.openshift.io/ExternalIPRanger", configuration), nil
}

// observeProxy returns the proxy environment of the pod's containers.
func observeProxy(o observation) (map[string]any, error) {
	status := o.cluster.Proxy.Status
	environment := map[string]any{}
	for name, value := range map[string]string{"HTTP_PROXY": status.HTTPProxy, "HTTPS_PROXY": status.HTTPSProxy, "NO_PROXY": status.NoProxy} {
		if value != "" {
			environment[name] = value
		}
	}
	if len(environment) == 0 {
		return nil, nil
	}
	return map[string]any{proxyKey: map[string]any{"proxy": environment}}, nil
}

// observeImagePolicy returns the registry's host names, which do not change after the render (R-REN-11).
func observeImagePolicy(o observation) (map[string]any, error) {
	policy := map[string]any{}
	if name := o.cluster.Image.Status.InternalRegistryHostname; name != "" {
		policy["internalRegistryHostname"] = name
	}
	if names := append(slices.Clone(o.cluster.Image.Spec.ExternalRegistryHostnames), o.cluster.Image.Status.ExternalRegistryHostnames...); len(names) > 0 {
		policy["externalRegistryHostnames"] = list(names)
	}
	if len(policy) == 0 {
		return nil, nil
	}
	return map[string]any{"imagePolicyConfig": policy}, nil
}

func observeNodeSelector(o observation) (map[string]any, error) {
	selector := o.cluster.Scheduler.Spec.DefaultNodeSelector
	if selector == "" {
		return nil, nil
	}
	return map[string]any{"projectConfig": map[string]any{"defaultNodeSelector": selector}}, nil
}

// observeTermination returns the shutdown delay, none on a single node: no other API server answers (U-REN-34).
func observeTermination(o observation) (map[string]any, error) {
	var delay, grace string
	switch {
	case singleReplica(o.cluster.Infrastructure):
		delay, grace = "0s", "15"
	case o.cluster.Infrastructure.Spec.PlatformSpec.Type == configv1.AWSPlatformType:
		delay, grace = "210s", "275"
	default:
		return nil, nil
	}
	part := argument("shutdown-delay-duration", delay)
	part[gracePeriodKey] = grace
	return part, nil
}

// observeConnections returns the probability of GOAWAY, which spreads clients over API servers; 0 on a single node.
func observeConnections(o observation) (map[string]any, error) {
	chance := "0.001"
	if singleReplica(o.cluster.Infrastructure) {
		chance = "0"
	}
	return arguments(map[string][]string{"goaway-chance": {chance}, "send-retry-after-while-not-ready-once": {"true"}}), nil
}

func singleReplica(infrastructure *configv1.Infrastructure) bool {
	return infrastructure.Status.ControlPlaneTopology == configv1.SingleReplicaTopologyMode
}

const defaultIssuer = "https://kubernetes.default.svc"

func observeServiceAccountIssuer(o observation) (map[string]any, error) {
	issuer := o.cluster.Authentication.Spec.ServiceAccountIssuer
	if issuer != "" {
		if _, err := url.Parse(issuer); strings.Contains(issuer, ":") && err != nil {
			return nil, fmt.Errorf("authentication.config.openshift.io %q: spec.serviceAccountIssuer: %w: %w", o.cluster.Authentication.Name, ErrInvalid, err)
		}
		return arguments(map[string][]string{"service-account-issuer": {issuer}, "api-audiences": {issuer}}), nil
	}
	if _, err := InternalHostnames(o.cluster.Infrastructure); err != nil {
		return nil, err
	}
	return arguments(map[string][]string{
		"service-account-issuer": {defaultIssuer}, "api-audiences": {defaultIssuer},
		// The default address is in no serving certificate.
		"service-account-jwks-uri": {o.cluster.Infrastructure.Status.APIServerInternalURL + "/openid/v1/jwks"},
	}), nil
}

// observeWebhookAuthenticator returns the arguments of the webhook, whose kubeconfig must not name files (R-REN-12).
func observeWebhookAuthenticator(o observation) (map[string]any, error) {
	name := webhookSecret(o.cluster.Authentication)
	if name == "" {
		return nil, nil
	}
	if err := checkWebhook(o.webhook); err != nil {
		return nil, fmt.Errorf("secret %s/%s, the webhook token authenticator: kubeConfig: %w", configNamespace, name, err)
	}
	return arguments(map[string][]string{
		"authentication-token-webhook-config-file": {revisioned("secrets", "webhook-authenticator", "kubeConfig")},
		"authentication-token-webhook-version":     {"v1"},
	}), nil
}

func webhookSecret(authentication *configv1.Authentication) string {
	if authentication.Spec.WebhookTokenAuthenticator == nil || authentication.Spec.Type != configv1.AuthenticationTypeNone {
		return ""
	}
	return authentication.Spec.WebhookTokenAuthenticator.KubeConfig.Name
}

func checkWebhook(kubeconfig []byte) error {
	if len(kubeconfig) == 0 {
		return fmt.Errorf("%w: add the Secret with the key kubeConfig to the input", ErrMissing)
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	current, found := config.Contexts[config.CurrentContext]
	if !found {
		return fmt.Errorf("%w: current-context %q is not among the contexts", ErrInvalid, config.CurrentContext)
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	switch {
	case cluster == nil || cluster.Server == "":
		return fmt.Errorf("%w: no server", ErrInvalid)
	case user == nil:
		return fmt.Errorf("%w: no user %q", ErrInvalid, current.AuthInfo)
	case cluster.CertificateAuthority != "" || user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "":
		return fmt.Errorf("%w: it names a file, which will not exist: use the fields that end in -data, or token", ErrInvalid)
	}
	return nil
}

func observeExternalOIDC(o observation) (map[string]any, error) {
	if o.cluster.Authentication.Spec.Type != configv1.AuthenticationTypeOIDC {
		return nil, nil
	}
	return argument("authentication-config", revisioned("configmaps", authConfig, authConfigKey)), nil
}

func observeLatency(o observation) (map[string]any, error) {
	var notReady, unreachable int
	switch profile := o.cluster.Node.Spec.WorkerLatencyProfile; profile {
	case "":
		return nil, nil
	case configv1.DefaultUpdateDefaultReaction:
		notReady, unreachable = configv1.DefaultNotReadyTolerationSeconds, configv1.DefaultUnreachableTolerationSeconds
	case configv1.MediumUpdateAverageReaction:
		notReady, unreachable = configv1.MediumNotReadyTolerationSeconds, configv1.MediumUnreachableTolerationSeconds
	case configv1.LowUpdateSlowReaction:
		notReady, unreachable = configv1.LowNotReadyTolerationSeconds, configv1.LowUnreachableTolerationSeconds
	default:
		return nil, fmt.Errorf("node.config.openshift.io %q: spec.workerLatencyProfile: %w: %q", o.cluster.Node.Name, ErrInvalid, profile)
	}
	return arguments(map[string][]string{
		"default-not-ready-toleration-seconds":   {strconv.Itoa(notReady)},
		"default-unreachable-toleration-seconds": {strconv.Itoa(unreachable)},
	}), nil
}

// observePodSecurity returns the default pod security level, enforced only with its feature gate.
func observePodSecurity(o observation) (map[string]any, error) {
	enforce := "privileged"
	gates, err := observe.FeatureGates(o.cluster.FeatureGate, o.profile)
	if err != nil {
		return nil, err
	}
	if slices.Contains(gates, "OpenShiftPodSecurityAdmission=true") {
		enforce = "restricted"
	}
	return plugin("PodSecurity", map[string]any{"defaults": map[string]any{
		"enforce": enforce, "enforce-version": "latest", "audit": "restricted", "audit-version": "latest", "warn": "restricted", "warn-version": "latest",
	}}), nil
}

// observeAdmissionPlugins enables the plugins for OpenShift's users, or disables them if users are external.
func observeAdmissionPlugins(o observation) (map[string]any, error) {
	flag := "enable-admission-plugins"
	switch o.cluster.Authentication.Spec.Type {
	case configv1.AuthenticationTypeNone, configv1.AuthenticationTypeOIDC:
		flag = "disable-admission-plugins"
	case "", configv1.AuthenticationTypeIntegratedOAuth:
	}
	return argument(flag, "authorization.openshift.io/RestrictSubjectBindings", "authorization.openshift.io/ValidateRoleBindingRestriction"), nil
}

func observeMinimumKubeletVersion(o observation) (map[string]any, error) {
	version := o.cluster.Node.Spec.MinimumKubeletVersion
	if version == "" {
		return nil, nil
	}
	part := argument("authorization-mode", "Scope", "SystemMasters", "RBAC", "Node", "MinimumKubeletVersion")
	part["minimumKubeletVersion"] = version
	return part, nil
}

func observeEventTTL(o observation) (map[string]any, error) {
	if o.eventTTLMinutes == 0 {
		return nil, nil
	}
	return argument("event-ttl", strconv.Itoa(int(o.eventTTLMinutes))+"m"), nil
}
