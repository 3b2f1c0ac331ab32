// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
)

const (
	needsNetworkOperator = "for the network operator"
	needsRegistry        = "for the image registry, the OpenShift API server and the nodes"
	needsIngressOperator = "for the ingress operator"
	needsOAuthServer     = "for the OAuth server of the authentication operator"
	writtenByOperators   = "written by operators"
	platformPrograms     = "for the platform and the nodes"
	infrastructureNames  = "host in serving certificates and kubeconfigs"
	imagePolicy          = "image admission and image streams"

	inputSecret    = "a Secret of openshift-config in the input"
	inputConfigMap = "a ConfigMap of openshift-config in the input"
	kmsPlugin      = "needs a plugin before kube-apiserver"
	wrongGate      = "a wrong gate stops kube-apiserver"
)

// Fields covers all fields of spec and status of the twelve resources; a test compares it with the API.
//
// It implements R-REN-2, R-REN-11 and R-REN-12.
var Fields = slices.Concat(
	of("Infrastructure",
		row(Ignored, "for the cloud controller manager's operator", "spec.cloudConfig"),
		row(Applied, "longer shutdown of kube-apiserver on AWS; others read it too", "spec.platformSpec.type"),
		row(ExportedOnly, platformPrograms+"; machine networks must not overlap others", "spec.platformSpec"),
		row(Applied, "kube-controller-manager's cluster name", "status.infrastructureName"),
		row(ExportedOnly, platformPrograms, "status.platform"),
		row(Applied, "longer etcd timeouts on VPC", "status.platformStatus.ibmcloud.providerType"),
		row(ExportedOnly, platformPrograms+"; longer etcd timeouts with azure", "status.platformStatus"),
		row(ExportedOnly, "not used", "status.etcdDiscoveryDomain"),
		row(Applied, infrastructureNames, "status.apiServerURL"),
		row(Applied, infrastructureNames+", and in the URL of the service account keys", "status.apiServerInternalURI"),
		accepting(Applied, "must match the number of control-plane nodes; no shutdown delay on one node", "status.controlPlaneTopology",
			values(configv1.SingleReplicaTopologyMode, configv1.HighlyAvailableTopologyMode),
			RefusedValue{string(configv1.DualReplicaTopologyMode), "Pacemaker runs etcd"},
			RefusedValue{string(configv1.HighlyAvailableArbiterMode), "arbiters are not rendered"},
			RefusedValue{string(configv1.ExternalTopologyMode), "no static pods"}),
		accepting(ExportedOnly, "for workloads", "status.infrastructureTopology",
			values(configv1.SingleReplicaTopologyMode, configv1.HighlyAvailableTopologyMode)),
		row(ExportedOnly, "for nodes and admission", "status.cpuPartitioning"),
	),
	of("Network",
		row(Applied, "pod networks", "spec.clusterNetwork[*].cidr"),
		row(Applied, "a node's pod network; must fit the cluster network", "spec.clusterNetwork[*].hostPrefix"),
		row(Applied, "service networks; their first addresses are in a serving certificate", "spec.serviceNetwork"),
		row(ExportedOnly, needsNetworkOperator, "spec.networkType"),
		row(AppliedOpenShift, "admission of external addresses", "spec.externalIP.policy.allowedCIDRs", "spec.externalIP.policy.rejectedCIDRs",
			"spec.externalIP.autoAssignCIDRs"),
		row(Applied, "range of node ports", "spec.serviceNodePortRange"),
		row(ExportedOnly, needsNetworkOperator, "spec.networkDiagnostics"),
		row(ExportedOnly, "default: the spec, which it must equal", "status.clusterNetwork", "status.serviceNetwork"),
		row(ExportedOnly, writtenByOperators, "status.networkType", "status.clusterNetworkMTU"),
		row(Refused, "no migration during the installation", "status.migration"),
		row(ExportedOnly, writtenByOperators, "status.conditions"),
	),
	of("APIServer",
		row(Applied, "server names of a serving certificate; not the internal one", "spec.servingCerts.namedCertificates[*].names"),
		row(Applied, inputSecret, "spec.servingCerts.namedCertificates[*].servingCertificate.name"),
		row(Applied, inputConfigMap+" with CAs of client certificates", "spec.clientCA.name"),
		row(Applied, "allowed CORS origins", "spec.additionalCORSAllowedOrigins"),
		accepting(Applied, "from the first write; the key is not rotated", "spec.encryption.type",
			values(configv1.EncryptionTypeIdentity, configv1.EncryptionTypeAESCBC, configv1.EncryptionTypeAESGCM), RefusedValue{string(configv1.EncryptionTypeKMS), kmsPlugin}),
		row(Refused, kmsPlugin, "spec.encryption.kms"),
		accepting(Applied, "TLS settings of all components", "spec.tlsSecurityProfile.type",
			values(configv1.TLSProfileOldType, configv1.TLSProfileIntermediateType, configv1.TLSProfileModernType, configv1.TLSProfileCustomType)),
		row(Applied, "ciphers of type Custom", "spec.tlsSecurityProfile.custom.ciphers"),
		accepting(Applied, "TLS version of type Custom", "spec.tlsSecurityProfile.custom.minTLSVersion",
			values(configv1.VersionTLS10, configv1.VersionTLS11, configv1.VersionTLS12, configv1.VersionTLS13)),
		accepting(ExportedOnly, "the static pods always use the profile", "spec.tlsAdherence",
			values(configv1.TLSAdherencePolicyLegacyAdheringComponentsOnly, configv1.TLSAdherencePolicyStrictAllComponents)),
		accepting(Applied, "audit policy", "spec.audit.profile", auditProfiles),
		row(Applied, "group of the rule", "spec.audit.customRules[*].group"),
		accepting(Applied, "audit policy of the group", "spec.audit.customRules[*].profile", auditProfiles),
	),
	of("Authentication",
		accepting(Applied, "IntegratedOAuth, the default: no OAuth tokens until an authentication operator runs", "spec.type",
			values(configv1.AuthenticationTypeNone, configv1.AuthenticationTypeIntegratedOAuth, configv1.AuthenticationTypeOIDC)),
		row(AppliedOpenShift, inputConfigMap+" with the metadata of an external OAuth server", "spec.oauthMetadata.name"),
		row(Refused, "deprecated; use webhookTokenAuthenticator", "spec.webhookTokenAuthenticators"),
		row(Applied, inputSecret+"; with type None only", "spec.webhookTokenAuthenticator.kubeConfig.name"),
		row(Applied, "issuer of service account tokens", "spec.serviceAccountIssuer"),
		row(ExportedOnly, "not used", oidcProviders+"name"),
		row(Applied, oidc, oidcProviders+"issuer.issuerURL", oidcProviders+"issuer.audiences"),
		row(Applied, inputConfigMap, oidcProviders+"issuer.issuerCertificateAuthority.name"),
		row(Applied, oidc, oidcProviders+"issuer.discoveryURL"),
		row(Ignored, "for the authentication operator", oidcProviders+"oidcClients"),
		row(Applied, oidc, oidcProviders+"claimMappings.username.claim", oidcProviders+"claimMappings.username.expression"),
		accepting(Applied, oidc, oidcProviders+"claimMappings.username.prefixPolicy",
			values(configv1.NoPrefix, configv1.Prefix)),
		row(Applied, oidc, oidcProviders+"claimMappings.username.prefix.prefixString", oidcProviders+"claimMappings.groups.claim",
			oidcProviders+"claimMappings.groups.expression", oidcProviders+"claimMappings.groups.prefix",
			oidcProviders+"claimMappings.uid.claim", oidcProviders+"claimMappings.uid.expression",
			oidcProviders+"claimMappings.extra[*].key", oidcProviders+"claimMappings.extra[*].valueExpression"),
		accepting(Applied, oidc, oidcProviders+"claimValidationRules[*].type",
			[]string{configv1.TokenValidationRuleTypeRequiredClaim, configv1.TokenValidationRuleTypeCEL}),
		row(Applied, oidc, oidcProviders+"claimValidationRules[*].requiredClaim.claim",
			oidcProviders+"claimValidationRules[*].requiredClaim.requiredValue",
			oidcProviders+"claimValidationRules[*].cel.expression", oidcProviders+"claimValidationRules[*].cel.message",
			oidcProviders+"userValidationRules[*].expression", oidcProviders+"userValidationRules[*].message"),
		row(Refused, "written by the authentication operator after the render", "status.integratedOAuthMetadata"),
		row(ExportedOnly, writtenByOperators, "status.oidcClients"),
	),
	of("OAuth",
		row(Refused, "need the OAuth server of the authentication operator; use type OIDC or a webhook of Authentication", "spec.identityProviders"),
		row(Ignored, needsOAuthServer, "spec.tokenConfig", "spec.templates"),
	),
	of("Image",
		row(Ignored, "for the OpenShift API server", "spec.allowedRegistriesForImport"),
		row(AppliedOpenShift, imagePolicy+"; later names have no effect", "spec.externalRegistryHostnames"),
		row(Ignored, needsRegistry, "spec.additionalTrustedCA", "spec.registrySources", "spec.imageStreamImportMode"),
		row(AppliedOpenShift, imagePolicy+"; later names have no effect", "status.internalRegistryHostname", "status.externalRegistryHostnames"),
		row(ExportedOnly, writtenByOperators, "status.imageStreamImportMode"),
	),
	of("Scheduler",
		row(Refused, "removed in Kubernetes 1.23; use profile", "spec.policy"),
		accepting(Applied, "scheduler plugins", "spec.profile",
			values(configv1.LowNodeUtilization, configv1.HighNodeUtilization, configv1.NoScoring)),
		accepting(Applied, "plugin for dynamic resources", "spec.profileCustomizations.dynamicResourceAllocation",
			values(configv1.DRAEnablementEnabled, configv1.DRAEnablementDisabled)),
		row(AppliedOpenShift, "default node selector of projects", "spec.defaultNodeSelector"),
		row(ExportedOnly, "for the nodes", "spec.mastersSchedulable"),
	),
	of("FeatureGate",
		accepting(AppliedOpenShift, "feature gates of OpenShift's components", "spec.featureSet",
			values(configv1.TechPreviewNoUpgrade, configv1.DevPreviewNoUpgrade, configv1.OKD), RefusedValue{string(configv1.CustomNoUpgrade), wrongGate}),
		row(Refused, wrongGate, "spec.customNoUpgrade"),
		row(ExportedOnly, writtenByOperators, "status.conditions"),
		row(AppliedOpenShift, "release of the gates; at most one", "status.featureGates[*].version"),
		row(AppliedOpenShift, "enabled gates; default: those of the feature set", "status.featureGates[*].enabled[*].name"),
		row(AppliedOpenShift, "disabled gates; default: those of the feature set", "status.featureGates[*].disabled[*].name"),
	),
	of("Proxy",
		row(Applied, proxied, "spec.httpProxy", "spec.httpsProxy", "spec.noProxy"),
		row(Ignored, "for the network operator", "spec.readinessEndpoints"),
		row(Ignored, "for the network operator; "+inputConfigMap, "spec.trustedCA"),
		row(Applied, proxied+"; default: the spec", "status.httpProxy", "status.httpsProxy"),
		row(Applied, proxied+"; default: spec, networks, nodes and internal names", "status.noProxy"),
	),
	of("Ingress",
		row(ExportedOnly, needsIngressOperator, "spec.domain", "spec.appsDomain"),
		row(Ignored, "for the operators of the routes", "spec.componentRoutes"),
		row(Ignored, "for the OpenShift API server", "spec.requiredHSTSPolicies"),
		row(ExportedOnly, needsIngressOperator, "spec.loadBalancer", "status"),
	),
	of("DNS",
		row(ExportedOnly, needsIngressOperator, "spec.baseDomain", "spec.publicZone", "spec.privateZone", "spec.platform"),
	),
	of("Node",
		row(ExportedOnly, "for the nodes", "spec.cgroupMode"),
		accepting(Applied, "tolerations and grace period of unreachable nodes; kubelets need the same profile", "spec.workerLatencyProfile",
			values(configv1.DefaultUpdateDefaultReaction, configv1.MediumUpdateAverageReaction, configv1.LowUpdateSlowReaction)),
		row(AppliedOpenShift, "authorizer for kubelets; needs feature gate MinimumKubeletVersion", "spec.minimumKubeletVersion"),
		row(ExportedOnly, writtenByOperators, "status"),
	),
)

const (
	oidc          = "with type OIDC"
	oidcProviders = "spec.oidcProviders[*]."
	proxied       = "proxy environment of the containers"
)

var auditProfiles = values(configv1.NoneAuditProfileType, configv1.DefaultAuditProfileType, configv1.WriteRequestBodiesAuditProfileType, configv1.AllRequestBodiesAuditProfileType)

func values[S ~string](of ...S) []string {
	texts := make([]string, len(of))
	for i := range of {
		texts[i] = string(of[i])
	}
	return texts
}

// of returns the entries of a resource.
func of(resource string, rows ...[]Field) []Field {
	all := slices.Concat(rows...)
	for i := range all {
		all[i].Resource = resource
	}
	return all
}

// row returns entries of one effect and reason.
func row(effect Effect, reason string, paths ...string) []Field {
	all := make([]Field, len(paths))
	for i, path := range paths {
		all[i] = Field{Path: path, Effect: effect, Reason: reason}
	}
	return all
}

// accepting returns an entry that accepts only some values.
func accepting(effect Effect, reason, path string, values []string, refused ...RefusedValue) []Field {
	return []Field{{Path: path, Effect: effect, Reason: reason, Values: values, RefusedValues: refused}}
}
