// SPDX-License-Identifier: Apache-2.0

package inputs

import (
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
var Fields = []Field{
	{Resource: "Infrastructure", Path: "spec.cloudConfig", Effect: Ignored, Reason: "for the cloud controller manager's operator"},
	{Resource: "Infrastructure", Path: "spec.platformSpec.type", Effect: Applied, Reason: "longer shutdown of kube-apiserver on AWS; others read it too"},
	{Resource: "Infrastructure", Path: "spec.platformSpec", Effect: ExportedOnly, Reason: platformPrograms + "; machine networks must not overlap others"},
	{Resource: "Infrastructure", Path: "status.infrastructureName", Effect: Applied, Reason: "kube-controller-manager's cluster name"},
	{Resource: "Infrastructure", Path: "status.platform", Effect: ExportedOnly, Reason: platformPrograms},
	{Resource: "Infrastructure", Path: "status.platformStatus.ibmcloud.providerType", Effect: Applied, Reason: "longer etcd timeouts on VPC"},
	{Resource: "Infrastructure", Path: "status.platformStatus", Effect: ExportedOnly, Reason: platformPrograms + "; longer etcd timeouts with azure"},
	{Resource: "Infrastructure", Path: "status.etcdDiscoveryDomain", Effect: ExportedOnly, Reason: "not used"},
	{Resource: "Infrastructure", Path: "status.apiServerURL", Effect: Applied, Reason: infrastructureNames},
	{Resource: "Infrastructure", Path: "status.apiServerInternalURI", Effect: Applied, Reason: infrastructureNames + ", and in the URL of the service account keys"},
	{
		Resource: "Infrastructure", Path: "status.controlPlaneTopology", Effect: Applied, Reason: "must match the number of control-plane nodes; no shutdown delay on one node",
		Values: values(configv1.SingleReplicaTopologyMode, configv1.HighlyAvailableTopologyMode),
		RefusedValues: []RefusedValue{
			{string(configv1.DualReplicaTopologyMode), "Pacemaker runs etcd"},
			{string(configv1.HighlyAvailableArbiterMode), "arbiters are not rendered"},
			{string(configv1.ExternalTopologyMode), "no static pods"},
		},
	},
	{
		Resource: "Infrastructure", Path: "status.infrastructureTopology", Effect: ExportedOnly, Reason: "for workloads",
		Values: values(configv1.SingleReplicaTopologyMode, configv1.HighlyAvailableTopologyMode),
	},
	{Resource: "Infrastructure", Path: "status.cpuPartitioning", Effect: ExportedOnly, Reason: "for nodes and admission"},

	{Resource: "Network", Path: "spec.clusterNetwork[*].cidr", Effect: Applied, Reason: "pod networks"},
	{Resource: "Network", Path: "spec.clusterNetwork[*].hostPrefix", Effect: Applied, Reason: "a node's pod network; must fit the cluster network"},
	{Resource: "Network", Path: "spec.serviceNetwork", Effect: Applied, Reason: "service networks; their first addresses are in a serving certificate"},
	{Resource: "Network", Path: "spec.networkType", Effect: ExportedOnly, Reason: needsNetworkOperator},
	{Resource: "Network", Path: "spec.externalIP.policy.allowedCIDRs", Effect: AppliedOpenShift, Reason: "admission of external addresses"},
	{Resource: "Network", Path: "spec.externalIP.policy.rejectedCIDRs", Effect: AppliedOpenShift, Reason: "admission of external addresses"},
	{Resource: "Network", Path: "spec.externalIP.autoAssignCIDRs", Effect: AppliedOpenShift, Reason: "admission of external addresses"},
	{Resource: "Network", Path: "spec.serviceNodePortRange", Effect: Applied, Reason: "range of node ports"},
	{Resource: "Network", Path: "spec.networkDiagnostics", Effect: ExportedOnly, Reason: needsNetworkOperator},
	{Resource: "Network", Path: "status.clusterNetwork", Effect: ExportedOnly, Reason: "default: the spec, which it must equal"},
	{Resource: "Network", Path: "status.serviceNetwork", Effect: ExportedOnly, Reason: "default: the spec, which it must equal"},
	{Resource: "Network", Path: "status.networkType", Effect: ExportedOnly, Reason: writtenByOperators},
	{Resource: "Network", Path: "status.clusterNetworkMTU", Effect: ExportedOnly, Reason: writtenByOperators},
	{Resource: "Network", Path: "status.migration", Effect: Refused, Reason: "no migration during the installation"},
	{Resource: "Network", Path: "status.conditions", Effect: ExportedOnly, Reason: writtenByOperators},

	{Resource: "APIServer", Path: "spec.servingCerts.namedCertificates[*].names", Effect: Applied, Reason: "server names of a serving certificate; not the internal one"},
	{Resource: "APIServer", Path: "spec.servingCerts.namedCertificates[*].servingCertificate.name", Effect: Applied, Reason: inputSecret},
	{Resource: "APIServer", Path: "spec.clientCA.name", Effect: Applied, Reason: inputConfigMap + " with CAs of client certificates"},
	{Resource: "APIServer", Path: "spec.additionalCORSAllowedOrigins", Effect: Applied, Reason: "allowed CORS origins"},
	{
		Resource: "APIServer", Path: "spec.encryption.type", Effect: Applied, Reason: "from the first write; the key is not rotated",
		Values: values(configv1.EncryptionTypeIdentity, configv1.EncryptionTypeAESCBC, configv1.EncryptionTypeAESGCM),
		RefusedValues: []RefusedValue{{string(configv1.EncryptionTypeKMS),
			kmsPlugin}},
	},
	{Resource: "APIServer", Path: "spec.encryption.kms", Effect: Refused, Reason: kmsPlugin},
	{
		Resource: "APIServer", Path: "spec.tlsSecurityProfile.type", Effect: Applied, Reason: "TLS settings of all components",
		Values: values(configv1.TLSProfileOldType, configv1.TLSProfileIntermediateType, configv1.TLSProfileModernType, configv1.TLSProfileCustomType),
	},
	{Resource: "APIServer", Path: "spec.tlsSecurityProfile.custom.ciphers", Effect: Applied, Reason: "ciphers of type Custom"},
	{
		Resource: "APIServer", Path: "spec.tlsSecurityProfile.custom.minTLSVersion", Effect: Applied, Reason: "TLS version of type Custom",
		Values: values(configv1.VersionTLS10, configv1.VersionTLS11, configv1.VersionTLS12, configv1.VersionTLS13),
	},
	{
		Resource: "APIServer", Path: "spec.tlsAdherence", Effect: ExportedOnly, Reason: "the static pods always use the profile",
		Values: values(configv1.TLSAdherencePolicyLegacyAdheringComponentsOnly, configv1.TLSAdherencePolicyStrictAllComponents),
	},
	{Resource: "APIServer", Path: "spec.audit.profile", Effect: Applied, Reason: "audit policy", Values: auditProfiles},
	{Resource: "APIServer", Path: "spec.audit.customRules[*].group", Effect: Applied, Reason: "group of the rule"},
	{Resource: "APIServer", Path: "spec.audit.customRules[*].profile", Effect: Applied, Reason: "audit policy of the group", Values: auditProfiles},

	{
		Resource: "Authentication", Path: "spec.type", Effect: Applied,
		Reason: "IntegratedOAuth, the default: no OAuth tokens until an authentication operator runs",
		Values: values(configv1.AuthenticationTypeNone, configv1.AuthenticationTypeIntegratedOAuth, configv1.AuthenticationTypeOIDC),
	},
	{Resource: "Authentication", Path: "spec.oauthMetadata.name", Effect: AppliedOpenShift, Reason: inputConfigMap + " with the metadata of an external OAuth server"},
	{Resource: "Authentication", Path: "spec.webhookTokenAuthenticators", Effect: Refused, Reason: "deprecated; use webhookTokenAuthenticator"},
	{Resource: "Authentication", Path: "spec.webhookTokenAuthenticator.kubeConfig.name", Effect: Applied, Reason: inputSecret + "; with type None only"},
	{Resource: "Authentication", Path: "spec.serviceAccountIssuer", Effect: Applied, Reason: "issuer of service account tokens"},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].name", Effect: ExportedOnly, Reason: "not used"},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].issuer.issuerURL", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].issuer.audiences", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].issuer.issuerCertificateAuthority.name", Effect: Applied, Reason: inputConfigMap},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].issuer.discoveryURL", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].oidcClients", Effect: Ignored, Reason: "for the authentication operator"},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].claimMappings.username.claim", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].claimMappings.username.expression", Effect: Applied, Reason: oidc},
	{
		Resource: "Authentication", Path: "spec.oidcProviders[*].claimMappings.username.prefixPolicy", Effect: Applied, Reason: oidc,
		Values: values(configv1.NoPrefix, configv1.Prefix),
	},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].claimMappings.username.prefix.prefixString", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].claimMappings.groups.claim", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].claimMappings.groups.expression", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].claimMappings.groups.prefix", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].claimMappings.uid.claim", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].claimMappings.uid.expression", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].claimMappings.extra[*].key", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].claimMappings.extra[*].valueExpression", Effect: Applied, Reason: oidc},
	{
		Resource: "Authentication", Path: "spec.oidcProviders[*].claimValidationRules[*].type", Effect: Applied, Reason: oidc,
		Values: []string{configv1.TokenValidationRuleTypeRequiredClaim, configv1.TokenValidationRuleTypeCEL},
	},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].claimValidationRules[*].requiredClaim.claim", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].claimValidationRules[*].requiredClaim.requiredValue", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].claimValidationRules[*].cel.expression", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].claimValidationRules[*].cel.message", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].userValidationRules[*].expression", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].userValidationRules[*].message", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "status.integratedOAuthMetadata", Effect: Refused, Reason: "written by the authentication operator after the render"},
	{Resource: "Authentication", Path: "status.oidcClients", Effect: ExportedOnly, Reason: writtenByOperators},

	{Resource: "OAuth", Path: "spec.identityProviders", Effect: Refused, Reason: "need the OAuth server of the authentication operator; use type OIDC or a webhook of Authentication"},
	{Resource: "OAuth", Path: "spec.tokenConfig", Effect: Ignored, Reason: needsOAuthServer},
	{Resource: "OAuth", Path: "spec.templates", Effect: Ignored, Reason: needsOAuthServer},

	{Resource: "Image", Path: "spec.allowedRegistriesForImport", Effect: Ignored, Reason: "for the OpenShift API server"},
	{Resource: "Image", Path: "spec.externalRegistryHostnames", Effect: AppliedOpenShift, Reason: imagePolicy + "; later names have no effect"},
	{Resource: "Image", Path: "spec.additionalTrustedCA", Effect: Ignored, Reason: needsRegistry},
	{Resource: "Image", Path: "spec.registrySources", Effect: Ignored, Reason: needsRegistry},
	{Resource: "Image", Path: "spec.imageStreamImportMode", Effect: Ignored, Reason: needsRegistry},
	{Resource: "Image", Path: "status.internalRegistryHostname", Effect: AppliedOpenShift, Reason: imagePolicy + "; later names have no effect"},
	{Resource: "Image", Path: "status.externalRegistryHostnames", Effect: AppliedOpenShift, Reason: imagePolicy + "; later names have no effect"},
	{Resource: "Image", Path: "status.imageStreamImportMode", Effect: ExportedOnly, Reason: writtenByOperators},

	{Resource: "Scheduler", Path: "spec.policy", Effect: Refused, Reason: "removed in Kubernetes 1.23; use profile"},
	{
		Resource: "Scheduler", Path: "spec.profile", Effect: Applied, Reason: "scheduler plugins",
		Values: values(configv1.LowNodeUtilization, configv1.HighNodeUtilization, configv1.NoScoring),
	},
	{
		Resource: "Scheduler", Path: "spec.profileCustomizations.dynamicResourceAllocation", Effect: Applied, Reason: "plugin for dynamic resources",
		Values: values(configv1.DRAEnablementEnabled, configv1.DRAEnablementDisabled),
	},
	{Resource: "Scheduler", Path: "spec.defaultNodeSelector", Effect: AppliedOpenShift, Reason: "default node selector of projects"},
	{Resource: "Scheduler", Path: "spec.mastersSchedulable", Effect: ExportedOnly, Reason: "for the nodes"},

	{
		Resource: "FeatureGate", Path: "spec.featureSet", Effect: AppliedOpenShift, Reason: "feature gates of OpenShift's components",
		Values: values(configv1.TechPreviewNoUpgrade, configv1.DevPreviewNoUpgrade, configv1.OKD),
		RefusedValues: []RefusedValue{{string(configv1.CustomNoUpgrade),
			wrongGate}},
	},
	{Resource: "FeatureGate", Path: "spec.customNoUpgrade", Effect: Refused, Reason: wrongGate},
	{Resource: "FeatureGate", Path: "status.conditions", Effect: ExportedOnly, Reason: writtenByOperators},
	{Resource: "FeatureGate", Path: "status.featureGates[*].version", Effect: AppliedOpenShift, Reason: "release of the gates; at most one"},
	{Resource: "FeatureGate", Path: "status.featureGates[*].enabled[*].name", Effect: AppliedOpenShift, Reason: "enabled gates; default: those of the feature set"},
	{Resource: "FeatureGate", Path: "status.featureGates[*].disabled[*].name", Effect: AppliedOpenShift, Reason: "disabled gates; default: those of the feature set"},

	{Resource: "Proxy", Path: "spec.httpProxy", Effect: Applied, Reason: proxied},
	{Resource: "Proxy", Path: "spec.httpsProxy", Effect: Applied, Reason: proxied},
	{Resource: "Proxy", Path: "spec.noProxy", Effect: Applied, Reason: proxied},
	{Resource: "Proxy", Path: "spec.readinessEndpoints", Effect: Ignored, Reason: "for the network operator"},
	{Resource: "Proxy", Path: "spec.trustedCA", Effect: Ignored, Reason: "for the network operator; " + inputConfigMap},
	{Resource: "Proxy", Path: "status.httpProxy", Effect: Applied, Reason: proxied + "; default: the spec"},
	{Resource: "Proxy", Path: "status.httpsProxy", Effect: Applied, Reason: proxied + "; default: the spec"},
	{Resource: "Proxy", Path: "status.noProxy", Effect: Applied, Reason: proxied + "; default: spec, networks, nodes and internal names"},

	{Resource: "Ingress", Path: "spec.domain", Effect: ExportedOnly, Reason: needsIngressOperator},
	{Resource: "Ingress", Path: "spec.appsDomain", Effect: ExportedOnly, Reason: needsIngressOperator},
	{Resource: "Ingress", Path: "spec.componentRoutes", Effect: Ignored, Reason: "for the operators of the routes"},
	{Resource: "Ingress", Path: "spec.requiredHSTSPolicies", Effect: Ignored, Reason: "for the OpenShift API server"},
	{Resource: "Ingress", Path: "spec.loadBalancer", Effect: ExportedOnly, Reason: needsIngressOperator},
	{Resource: "Ingress", Path: "status", Effect: ExportedOnly, Reason: needsIngressOperator},

	{Resource: "DNS", Path: "spec.baseDomain", Effect: ExportedOnly, Reason: needsIngressOperator},
	{Resource: "DNS", Path: "spec.publicZone", Effect: ExportedOnly, Reason: needsIngressOperator},
	{Resource: "DNS", Path: "spec.privateZone", Effect: ExportedOnly, Reason: needsIngressOperator},
	{Resource: "DNS", Path: "spec.platform", Effect: ExportedOnly, Reason: needsIngressOperator},

	{Resource: "Node", Path: "spec.cgroupMode", Effect: ExportedOnly, Reason: "for the nodes"},
	{
		Resource: "Node", Path: "spec.workerLatencyProfile", Effect: Applied,
		Reason: "tolerations and grace period of unreachable nodes; kubelets need the same profile",
		Values: values(configv1.DefaultUpdateDefaultReaction, configv1.MediumUpdateAverageReaction, configv1.LowUpdateSlowReaction),
	},
	{Resource: "Node", Path: "spec.minimumKubeletVersion", Effect: AppliedOpenShift, Reason: "authorizer for kubelets; needs feature gate MinimumKubeletVersion"},
	{Resource: "Node", Path: "status", Effect: ExportedOnly, Reason: writtenByOperators},
}

const (
	oidc    = "with type OIDC"
	proxied = "proxy environment of the containers"
)

var auditProfiles = values(configv1.NoneAuditProfileType, configv1.DefaultAuditProfileType, configv1.WriteRequestBodiesAuditProfileType, configv1.AllRequestBodiesAuditProfileType)

func values[S ~string](of ...S) []string {
	texts := make([]string, len(of))
	for i := range of {
		texts[i] = string(of[i])
	}
	return texts
}
