// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/observe"
)

// ErrInvalid is returned for a value with which kube-apiserver would not start.
var ErrInvalid = errors.New("invalid")

// observation is the input of the observers, which are pure functions.
type observation struct {
	*inputs.Cluster
	Profile inputs.Profile
	// EtcdEndpoints are the data of the ConfigMap openshift-etcd/etcd-endpoints.
	EtcdEndpoints   map[string]string
	Encrypted       bool
	EventTTLMinutes int32
}

// observer returns a part of KubeAPIServerConfig as decoded JSON, or nil for the default.
type observer func(observation) (map[string]any, error)

// observers are those of kube-apiserver alone. No two set the same field.
var observers = []struct {
	name    string
	observe observer
}{
	{"named certificates", observeNamedCertificates},
	{"CORS", observeCORS},
	{"OAuth metadata", observeOAuthMetadata},
	{"encryption", observeEncryption},
	{"etcd", observeEtcd},
	{"services", observeServices},
	{"restricted endpoints", observeRestrictedEndpoints},
	{"external addresses", observeExternalIPPolicy},
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
		set[name] = observe.List(values[name])
	}
	return map[string]any{"apiServerArguments": set}
}

// servingCertificates are those of the first step. The last one is revisioned, for use when the others have expired.
var servingCertificates = []string{
	unrevisioned("secrets", "localhost-serving-cert-certkey", ""),
	unrevisioned("secrets", "service-network-serving-certkey", ""),
	unrevisioned("secrets", "external-loadbalancer-serving-certkey", ""),
	unrevisioned("secrets", "internal-loadbalancer-serving-certkey", ""),
	revisioned("secrets", "localhost-recovery-serving-certkey", ""),
}

func userServingCertificate(i int) string { return fmt.Sprintf("user-serving-cert-%03d", i) }

func observeNamedCertificates(o observation) (map[string]any, error) {
	var certificates []any
	for _, folder := range servingCertificates {
		certificates = append(certificates, map[string]any{"certFile": folder + "tls.crt", "keyFile": folder + "tls.key"})
	}
	for i, certificate := range o.APIServer.Spec.ServingCerts.NamedCertificates {
		folder := unrevisioned("secrets", userServingCertificate(i), "")
		entry := map[string]any{"certFile": folder + "tls.crt", "keyFile": folder + "tls.key"}
		if len(certificate.Names) > 0 {
			entry["names"] = observe.List(certificate.Names)
		}
		certificates = append(certificates, entry)
	}
	return map[string]any{"servingInfo": map[string]any{"namedCertificates": certificates}}, nil
}

func observeCORS(o observation) (map[string]any, error) {
	origins := append([]string{`//127\.0\.0\.1(:|$)`, `//localhost(:|$)`}, o.APIServer.Spec.AdditionalCORSAllowedOrigins...)
	slices.Sort(origins)
	return map[string]any{"corsAllowedOrigins": observe.List(slices.Compact(origins))}, nil
}

func observeOAuthMetadata(o observation) (map[string]any, error) {
	if _, found := oauthMetadata(o.Authentication); !found {
		return nil, nil
	}
	return map[string]any{"authConfig": map[string]any{"oauthMetadataFile": revisioned("configmaps", "oauth-metadata", "oauthMetadata")}}, nil
}

func observeEncryption(o observation) (map[string]any, error) {
	if !o.Encrypted {
		return nil, nil
	}
	return argument("encryption-provider-config", revisioned("secrets", "encryption-config", "encryption-config")), nil
}

// observeEtcd returns the endpoints that etcd's loops have written.
func observeEtcd(o observation) (map[string]any, error) {
	servers := []string{"https://localhost:2379"}
	for name, address := range o.EtcdEndpoints {
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

func observeServices(o observation) (map[string]any, error) {
	ranges := serviceNetwork(o.Network)
	serving := map[string]any{"bindAddress": "0.0.0.0:6443", "bindNetwork": "tcp4"}
	switch {
	case isIPv6(ranges[0]):
		serving = map[string]any{"bindAddress": "[::]:6443", "bindNetwork": "tcp6"}
	case len(ranges) > 1:
		serving = map[string]any{"bindAddress": "[::]:6443", "bindNetwork": "tcp"}
	}
	part := map[string]any{"servicesSubnet": strings.Join(ranges, ","), "servingInfo": serving}
	if nodePorts := o.Network.Spec.ServiceNodePortRange; nodePorts != "" {
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
	ranges := append(clusterNetwork(o.Network), serviceNetwork(o.Network)...)
	return plugin(restrictedEndpoints, map[string]any{
		"apiVersion": "network.openshift.io/v1", "kind": "RestrictedEndpointsAdmissionConfig", "restrictedCIDRs": observe.List(ranges),
	}), nil
}

func observeExternalIPPolicy(o observation) (map[string]any, error) {
	configuration := map[string]any{"apiVersion": "network.openshift.io/v1", "kind": "ExternalIPRangerAdmissionConfig", "allowIngressIP": false}
	if external := o.Network.Spec.ExternalIP; external != nil {
		configuration["allowIngressIP"] = len(external.AutoAssignCIDRs) > 0
		if external.Policy != nil {
			var ranges []string
			for _, cidr := range external.Policy.RejectedCIDRs {
				ranges = append(ranges, "!"+cidr)
			}
			if ranges = append(ranges, external.Policy.AllowedCIDRs...); len(ranges) > 0 {
				configuration["externalIPNetworkCIDRs"] = observe.List(ranges)
			}
		}
	}
	return plugin("network.openshift.io/ExternalIPRanger", configuration), nil
}

// observeImagePolicy returns the registry's host names, which do not change after the render (R-REN-11).
func observeImagePolicy(o observation) (map[string]any, error) {
	policy := map[string]any{}
	if name := o.Image.Status.InternalRegistryHostname; name != "" {
		policy["internalRegistryHostname"] = name
	}
	if names := append(slices.Clone(o.Image.Spec.ExternalRegistryHostnames), o.Image.Status.ExternalRegistryHostnames...); len(names) > 0 {
		policy["externalRegistryHostnames"] = observe.List(names)
	}
	if len(policy) == 0 {
		return nil, nil
	}
	return map[string]any{"imagePolicyConfig": policy}, nil
}

func observeNodeSelector(o observation) (map[string]any, error) {
	selector := o.Scheduler.Spec.DefaultNodeSelector
	if selector == "" {
		return nil, nil
	}
	return map[string]any{"projectConfig": map[string]any{"defaultNodeSelector": selector}}, nil
}

// observeTermination returns the shutdown delay, none on a single node: no other API server answers (U-REN-34).
func observeTermination(o observation) (map[string]any, error) {
	var delay, grace string
	switch {
	case singleReplica(o.Infrastructure):
		delay, grace = "0s", "15"
	case o.Infrastructure.Spec.PlatformSpec.Type == configv1.AWSPlatformType:
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
	if singleReplica(o.Infrastructure) {
		chance = "0"
	}
	return arguments(map[string][]string{"goaway-chance": {chance}, "send-retry-after-while-not-ready-once": {"true"}}), nil
}

func singleReplica(infrastructure *configv1.Infrastructure) bool {
	return infrastructure.Status.ControlPlaneTopology == configv1.SingleReplicaTopologyMode
}

const defaultIssuer = "https://kubernetes.default.svc"

func observeServiceAccountIssuer(o observation) (map[string]any, error) {
	if issuer := o.Authentication.Spec.ServiceAccountIssuer; issuer != "" {
		return arguments(map[string][]string{"service-account-issuer": {issuer}, "api-audiences": {issuer}}), nil
	}
	return arguments(map[string][]string{
		"service-account-issuer": {defaultIssuer}, "api-audiences": {defaultIssuer},
		// The default address is in no serving certificate.
		"service-account-jwks-uri": {o.Infrastructure.Status.APIServerInternalURL + "/openid/v1/jwks"},
	}), nil
}

// observeWebhookAuthenticator returns the arguments of the webhook (R-REN-12).
func observeWebhookAuthenticator(o observation) (map[string]any, error) {
	if webhookSecret(o.Authentication) == "" {
		return nil, nil
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

func observeExternalOIDC(o observation) (map[string]any, error) {
	if o.Authentication.Spec.Type != configv1.AuthenticationTypeOIDC {
		return nil, nil
	}
	return argument("authentication-config", revisioned("configmaps", authConfig, authConfigKey)), nil
}

func observeLatency(o observation) (map[string]any, error) {
	var notReady, unreachable int
	switch profile := o.Node.Spec.WorkerLatencyProfile; profile {
	case "":
		return nil, nil
	case configv1.DefaultUpdateDefaultReaction:
		notReady, unreachable = configv1.DefaultNotReadyTolerationSeconds, configv1.DefaultUnreachableTolerationSeconds
	case configv1.MediumUpdateAverageReaction:
		notReady, unreachable = configv1.MediumNotReadyTolerationSeconds, configv1.MediumUnreachableTolerationSeconds
	case configv1.LowUpdateSlowReaction:
		notReady, unreachable = configv1.LowNotReadyTolerationSeconds, configv1.LowUnreachableTolerationSeconds
	default:
		return nil, fmt.Errorf("node.config.openshift.io %q: spec.workerLatencyProfile: %w: %q", o.Node.Name, ErrInvalid, profile)
	}
	return arguments(map[string][]string{
		"default-not-ready-toleration-seconds":   {strconv.Itoa(notReady)},
		"default-unreachable-toleration-seconds": {strconv.Itoa(unreachable)},
	}), nil
}

// observePodSecurity returns the default pod security level, enforced only with its feature gate.
func observePodSecurity(o observation) (map[string]any, error) {
	enforce := "privileged"
	gates, err := observe.FeatureGates(o.FeatureGate, o.Profile)
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
	switch o.Authentication.Spec.Type {
	case configv1.AuthenticationTypeNone, configv1.AuthenticationTypeOIDC:
		flag = "disable-admission-plugins"
	case "", configv1.AuthenticationTypeIntegratedOAuth:
	}
	return argument(flag, "authorization.openshift.io/RestrictSubjectBindings", "authorization.openshift.io/ValidateRoleBindingRestriction"), nil
}

func observeMinimumKubeletVersion(o observation) (map[string]any, error) {
	version := o.Node.Spec.MinimumKubeletVersion
	if version == "" {
		return nil, nil
	}
	part := argument("authorization-mode", "Scope", "SystemMasters", "RBAC", "Node", "MinimumKubeletVersion")
	part["minimumKubeletVersion"] = version
	return part, nil
}

func observeEventTTL(o observation) (map[string]any, error) {
	if o.EventTTLMinutes == 0 {
		return nil, nil
	}
	return argument("event-ttl", strconv.Itoa(int(o.EventTTLMinutes))+"m"), nil
}
