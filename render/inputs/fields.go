package inputs

import (
	configv1 "github.com/openshift/api/config/v1"
)

// Reasons that several rows share.
const (
	needsNetworkOperator  = "the network operator acts on it"
	needsRegistry         = "the image registry, the OpenShift API server and the nodes' configuration act on it"
	needsIngressOperator  = "the ingress operator acts on it"
	needsOAuthServer      = "it is about the OAuth server, which the authentication operator runs"
	writtenByOperators    = "operators write it"
	platformPrograms = "programs of the platform and the nodes' configuration read it"
	infrastructureNames   = "it is a name in the serving certificates and in the kubeconfigs"
	imagePolicy            = "the part of kube-apiserver's configuration for images, which image admission and image streams read"
)

// Fields is the table of all fields of the twelve resources: spec and status. A test compares it with the API, so a field that is in
// no row cannot be.
//
// It implements R-REN-2, R-REN-11 and R-REN-12.
var Fields = []Field{
	{Resource: "Infrastructure", Path: "spec.cloudConfig", Effect: Ignored, Reason: "cloud providers are no part of Kubernetes any more; the operator of the cloud controller manager reads it"},
	{Resource: "Infrastructure", Path: "spec.platformSpec.type", Effect: Applied, Reason: "on AWS kube-apiserver stays up for longer after it was told to stop; others read it too"},
	{Resource: "Infrastructure", Path: "spec.platformSpec", Effect: ExportedOnly, Reason: platformPrograms + "; machine networks must not overlap others"},
	{Resource: "Infrastructure", Path: "status.infrastructureName", Effect: Applied, Reason: "kube-controller-manager's name of the cluster"},
	{Resource: "Infrastructure", Path: "status.platform", Effect: ExportedOnly, Reason: platformPrograms},
	{Resource: "Infrastructure", Path: "status.platformStatus.ibmcloud.providerType", Effect: Applied, Reason: "on VPC etcd's members wait longer for each other"},
	{Resource: "Infrastructure", Path: "status.platformStatus", Effect: ExportedOnly, Reason: platformPrograms + "; where there is a part azure etcd's members wait longer for each other"},
	{Resource: "Infrastructure", Path: "status.etcdDiscoveryDomain", Effect: ExportedOnly, Reason: "nothing has read it since etcd is found by addresses"},
	{Resource: "Infrastructure", Path: "status.apiServerURL", Effect: Applied, Reason: infrastructureNames},
	{Resource: "Infrastructure", Path: "status.apiServerInternalURI", Effect: Applied, Reason: infrastructureNames + ", and where the keys of service account tokens are found"},
	{
		Resource: "Infrastructure", Path: "status.controlPlaneTopology", Effect: Applied, Reason: "must fit the number of control-plane nodes; on one node kube-apiserver ends at once",
		Values: values(configv1.SingleReplicaTopologyMode, configv1.HighlyAvailableTopologyMode),
		RefusedValues: []RefusedValue{
			{string(configv1.DualReplicaTopologyMode), "on two nodes Pacemaker runs etcd, which no static pod does"},
			{string(configv1.HighlyAvailableArbiterMode), "an arbiter runs etcd alone, and is not rendered"},
			{string(configv1.ExternalTopologyMode), "its control plane runs elsewhere, so there are no static pods"},
		},
	},
	{
		Resource: "Infrastructure", Path: "status.infrastructureTopology", Effect: ExportedOnly, Reason: "it is about what runs on workers",
		Values: values(configv1.SingleReplicaTopologyMode, configv1.HighlyAvailableTopologyMode),
	},
	{Resource: "Infrastructure", Path: "status.cpuPartitioning", Effect: ExportedOnly, Reason: "the nodes' configuration and admission read it"},

	{Resource: "Network", Path: "spec.clusterNetwork[*].cidr", Effect: Applied, Reason: "kube-controller-manager's and admission's pod networks"},
	{Resource: "Network", Path: "spec.clusterNetwork[*].hostPrefix", Effect: Applied, Reason: "the size of a node's pod network; must fit the network"},
	{Resource: "Network", Path: "spec.serviceNetwork", Effect: Applied, Reason: "kube-apiserver's and kube-controller-manager's service networks, and the first address in a serving certificate"},
	{Resource: "Network", Path: "spec.networkType", Effect: ExportedOnly, Reason: needsNetworkOperator},
	{Resource: "Network", Path: "spec.externalIP.policy.allowedCIDRs", Effect: AppliedOpenShift, Reason: "admission of external addresses"},
	{Resource: "Network", Path: "spec.externalIP.policy.rejectedCIDRs", Effect: AppliedOpenShift, Reason: "admission of external addresses"},
	{Resource: "Network", Path: "spec.externalIP.autoAssignCIDRs", Effect: AppliedOpenShift, Reason: "admission of external addresses"},
	{Resource: "Network", Path: "spec.serviceNodePortRange", Effect: Applied, Reason: "kube-apiserver's range of node ports"},
	{Resource: "Network", Path: "spec.networkDiagnostics", Effect: ExportedOnly, Reason: needsNetworkOperator},
	{Resource: "Network", Path: "status.clusterNetwork", Effect: ExportedOnly, Reason: "must be the spec's; where it is empty it is filled from there, as the network operator does"},
	{Resource: "Network", Path: "status.serviceNetwork", Effect: ExportedOnly, Reason: "must be the spec's; where it is empty it is filled from there, as the network operator does"},
	{Resource: "Network", Path: "status.networkType", Effect: ExportedOnly, Reason: writtenByOperators},
	{Resource: "Network", Path: "status.clusterNetworkMTU", Effect: ExportedOnly, Reason: writtenByOperators},
	{Resource: "Network", Path: "status.migration", Effect: Refused, Reason: "a network is not migrated while a cluster is made"},
	{Resource: "Network", Path: "status.conditions", Effect: ExportedOnly, Reason: writtenByOperators},

	{Resource: "APIServer", Path: "spec.servingCerts.namedCertificates[*].names", Effect: Applied, Reason: "kube-apiserver's certificates by server name; not for its internal name, which the nodes trust by the cluster's own CA"},
	{Resource: "APIServer", Path: "spec.servingCerts.namedCertificates[*].servingCertificate.name", Effect: Applied, Reason: "a Secret of openshift-config, which must be in the input"},
	{Resource: "APIServer", Path: "spec.clientCA.name", Effect: Applied, Reason: "a ConfigMap of openshift-config, which must be in the input: further signers of client certificates"},
	{Resource: "APIServer", Path: "spec.additionalCORSAllowedOrigins", Effect: Applied, Reason: "kube-apiserver's allowed origins"},
	{
		Resource: "APIServer", Path: "spec.encryption.type", Effect: Applied, Reason: "everything is written encrypted from the first write; the key is not rotated later",
		Values: values(configv1.EncryptionTypeIdentity, configv1.EncryptionTypeAESCBC, configv1.EncryptionTypeAESGCM),
		RefusedValues: []RefusedValue{{string(configv1.EncryptionTypeKMS),
			"it needs a plugin that runs before kube-apiserver and that an operator rolls out"}},
	},
	{Resource: "APIServer", Path: "spec.encryption.kms", Effect: Refused, Reason: "KMS needs a plugin that runs before kube-apiserver and that an operator rolls out"},
	{
		Resource: "APIServer", Path: "spec.tlsSecurityProfile.type", Effect: Applied, Reason: "the ciphers and the oldest version of TLS of all components",
		Values: values(configv1.TLSProfileOldType, configv1.TLSProfileIntermediateType, configv1.TLSProfileModernType, configv1.TLSProfileCustomType),
	},
	{Resource: "APIServer", Path: "spec.tlsSecurityProfile.custom.ciphers", Effect: Applied, Reason: "the ciphers of type Custom"},
	{
		Resource: "APIServer", Path: "spec.tlsSecurityProfile.custom.minTLSVersion", Effect: Applied, Reason: "the oldest version of TLS of type Custom",
		Values: values(configv1.VersionTLS10, configv1.VersionTLS11, configv1.VersionTLS12, configv1.VersionTLS13),
	},
	{
		Resource: "APIServer", Path: "spec.tlsAdherence", Effect: ExportedOnly, Reason: "the control plane's components follow the profile in any case",
		Values: values(configv1.TLSAdherencePolicyLegacyAdheringComponentsOnly, configv1.TLSAdherencePolicyStrictAllComponents),
	},
	{Resource: "APIServer", Path: "spec.audit.profile", Effect: Applied, Reason: "kube-apiserver's audit policy", Values: auditProfiles},
	{Resource: "APIServer", Path: "spec.audit.customRules[*].group", Effect: Applied, Reason: "whose requests the rule is about"},
	{Resource: "APIServer", Path: "spec.audit.customRules[*].profile", Effect: Applied, Reason: "kube-apiserver's audit policy for the group", Values: auditProfiles},

	{
		Resource: "Authentication", Path: "spec.type", Effect: Applied,
		Reason: "None and OIDC are complete at render time; IntegratedOAuth and nothing mean that there are no OAuth tokens before an " +
			"authentication operator runs, only certificates and service account tokens",
		Values: values(configv1.AuthenticationTypeNone, configv1.AuthenticationTypeIntegratedOAuth, configv1.AuthenticationTypeOIDC),
	},
	{Resource: "Authentication", Path: "spec.oauthMetadata.name", Effect: AppliedOpenShift, Reason: "a ConfigMap of openshift-config, which must be in the input: kube-apiserver serves what it says of an OAuth server elsewhere"},
	{Resource: "Authentication", Path: "spec.webhookTokenAuthenticators", Effect: Refused, Reason: "deprecated, and no operator has acted on it for long; webhookTokenAuthenticator is what works"},
	{Resource: "Authentication", Path: "spec.webhookTokenAuthenticator.kubeConfig.name", Effect: Applied, Reason: "a Secret of openshift-config, which must be in the input; with type None only, as in the API's documentation"},
	{Resource: "Authentication", Path: "spec.serviceAccountIssuer", Effect: Applied, Reason: "kube-apiserver's issuer of service account tokens"},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].name", Effect: ExportedOnly, Reason: "a name for people"},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].issuer.issuerURL", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].issuer.audiences", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].issuer.issuerCertificateAuthority.name", Effect: Applied, Reason: "a ConfigMap of openshift-config, which must be in the input"},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].issuer.discoveryURL", Effect: Applied, Reason: oidc},
	{Resource: "Authentication", Path: "spec.oidcProviders[*].oidcClients", Effect: Ignored, Reason: "the console and the command line get their clients from the authentication operator"},
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
	{Resource: "Authentication", Path: "status.integratedOAuthMetadata", Effect: Refused, Reason: "the authentication operator writes it when its OAuth server runs, which is after the static pods were rendered"},
	{Resource: "Authentication", Path: "status.oidcClients", Effect: ExportedOnly, Reason: writtenByOperators},

	{Resource: "OAuth", Path: "spec.identityProviders", Effect: Refused, Reason: "identity providers need the OAuth server, which only the authentication operator runs; Authentication of type OIDC, or a webhook, works without operators"},
	{Resource: "OAuth", Path: "spec.tokenConfig", Effect: Ignored, Reason: needsOAuthServer},
	{Resource: "OAuth", Path: "spec.templates", Effect: Ignored, Reason: needsOAuthServer},

	{Resource: "Image", Path: "spec.allowedRegistriesForImport", Effect: Ignored, Reason: "the OpenShift API server acts on it when it imports images"},
	{Resource: "Image", Path: "spec.externalRegistryHostnames", Effect: AppliedOpenShift, Reason: imagePolicy + "; settled at render time, a name that the registry gets later does not reach kube-apiserver"},
	{Resource: "Image", Path: "spec.additionalTrustedCA", Effect: Ignored, Reason: needsRegistry},
	{Resource: "Image", Path: "spec.registrySources", Effect: Ignored, Reason: needsRegistry},
	{Resource: "Image", Path: "spec.imageStreamImportMode", Effect: Ignored, Reason: needsRegistry},
	{Resource: "Image", Path: "status.internalRegistryHostname", Effect: AppliedOpenShift, Reason: imagePolicy + "; settled at render time, where the registry operator would set it later"},
	{Resource: "Image", Path: "status.externalRegistryHostnames", Effect: AppliedOpenShift, Reason: imagePolicy + "; settled at render time, where the registry operator would set it later"},
	{Resource: "Image", Path: "status.imageStreamImportMode", Effect: ExportedOnly, Reason: writtenByOperators},

	{Resource: "Scheduler", Path: "spec.policy", Effect: Refused, Reason: "Kubernetes has no scheduler policies since 1.23; a profile is what works"},
	{
		Resource: "Scheduler", Path: "spec.profile", Effect: Applied, Reason: "kube-scheduler's plugins",
		Values: values(configv1.LowNodeUtilization, configv1.HighNodeUtilization, configv1.NoScoring),
	},
	{
		Resource: "Scheduler", Path: "spec.profileCustomizations.dynamicResourceAllocation", Effect: Applied, Reason: "kube-scheduler's plugin for dynamic resources",
		Values: values(configv1.DRAEnablementEnabled, configv1.DRAEnablementDisabled),
	},
	{Resource: "Scheduler", Path: "spec.defaultNodeSelector", Effect: AppliedOpenShift, Reason: "kube-apiserver's node selector for projects that have none"},
	{Resource: "Scheduler", Path: "spec.mastersSchedulable", Effect: ExportedOnly, Reason: "the nodes' configuration gives the taints and labels"},

	{
		Resource: "FeatureGate", Path: "spec.featureSet", Effect: AppliedOpenShift, Reason: "the components' feature gates, which Kubernetes' own programs do not know",
		Values: values(configv1.TechPreviewNoUpgrade, configv1.DevPreviewNoUpgrade, configv1.OKD),
		RefusedValues: []RefusedValue{{string(configv1.CustomNoUpgrade),
			"a wrong gate keeps kube-apiserver from starting, and no operator could take it back"}},
	},
	{Resource: "FeatureGate", Path: "spec.customNoUpgrade", Effect: Refused, Reason: "a wrong gate keeps kube-apiserver from starting, and no operator could take it back"},
	{Resource: "FeatureGate", Path: "status.conditions", Effect: ExportedOnly, Reason: writtenByOperators},
	{Resource: "FeatureGate", Path: "status.featureGates[*].version", Effect: AppliedOpenShift, Reason: "for which release the gates are; there must be one"},
	{Resource: "FeatureGate", Path: "status.featureGates[*].enabled[*].name", Effect: AppliedOpenShift, Reason: "gates that are on; where there are none, those of the set are used"},
	{Resource: "FeatureGate", Path: "status.featureGates[*].disabled[*].name", Effect: AppliedOpenShift, Reason: "gates that are off; where there are none, those of the set are used"},

	{Resource: "Proxy", Path: "spec.httpProxy", Effect: Applied, Reason: proxied},
	{Resource: "Proxy", Path: "spec.httpsProxy", Effect: Applied, Reason: proxied},
	{Resource: "Proxy", Path: "spec.noProxy", Effect: Applied, Reason: proxied},
	{Resource: "Proxy", Path: "spec.readinessEndpoints", Effect: Ignored, Reason: "the network operator tries them before it accepts a proxy"},
	{Resource: "Proxy", Path: "spec.trustedCA", Effect: Ignored, Reason: "the network operator merges it into the bundles that ask for it; it must be a ConfigMap of openshift-config in the input"},
	{Resource: "Proxy", Path: "status.httpProxy", Effect: Applied, Reason: proxied + "; filled from the spec where it is empty"},
	{Resource: "Proxy", Path: "status.httpsProxy", Effect: Applied, Reason: proxied + "; filled from the spec where it is empty"},
	{Resource: "Proxy", Path: "status.noProxy", Effect: Applied, Reason: proxied + "; filled from the spec, the networks, the nodes and the internal names where it is empty"},

	{Resource: "Ingress", Path: "spec.domain", Effect: ExportedOnly, Reason: needsIngressOperator},
	{Resource: "Ingress", Path: "spec.appsDomain", Effect: ExportedOnly, Reason: needsIngressOperator},
	{Resource: "Ingress", Path: "spec.componentRoutes", Effect: Ignored, Reason: "the operators of the routes act on it"},
	{Resource: "Ingress", Path: "spec.requiredHSTSPolicies", Effect: Ignored, Reason: "the OpenShift API server acts on it"},
	{Resource: "Ingress", Path: "spec.loadBalancer", Effect: ExportedOnly, Reason: needsIngressOperator},
	{Resource: "Ingress", Path: "status", Effect: ExportedOnly, Reason: needsIngressOperator},

	{Resource: "DNS", Path: "spec.baseDomain", Effect: ExportedOnly, Reason: needsIngressOperator},
	{Resource: "DNS", Path: "spec.publicZone", Effect: ExportedOnly, Reason: needsIngressOperator},
	{Resource: "DNS", Path: "spec.privateZone", Effect: ExportedOnly, Reason: needsIngressOperator},
	{Resource: "DNS", Path: "spec.platform", Effect: ExportedOnly, Reason: needsIngressOperator},

	{Resource: "Node", Path: "spec.cgroupMode", Effect: ExportedOnly, Reason: "the nodes' configuration"},
	{
		Resource: "Node", Path: "spec.workerLatencyProfile", Effect: Applied,
		Reason:    "kube-apiserver's tolerations of nodes that do not answer and kube-controller-manager's time until then; the kubelets must have the profile too",
		Values: values(configv1.DefaultUpdateDefaultReaction, configv1.MediumUpdateAverageReaction, configv1.LowUpdateSlowReaction),
	},
	{Resource: "Node", Path: "spec.minimumKubeletVersion", Effect: AppliedOpenShift, Reason: "kube-apiserver's authorizer for kubelets that are older; the API has the field with the feature gate MinimumKubeletVersion"},
	{Resource: "Node", Path: "status", Effect: ExportedOnly, Reason: writtenByOperators},
}

const (
	oidc    = "kube-apiserver's authentication by OpenID Connect, with type OIDC"
	proxied = "the environment of containers that call out of the cluster"
)

var auditProfiles = values(configv1.NoneAuditProfileType, configv1.DefaultAuditProfileType, configv1.WriteRequestBodiesAuditProfileType, configv1.AllRequestBodiesAuditProfileType)

func values[S ~string](of ...S) []string {
	texts := make([]string, len(of))
	for i := range of {
		texts[i] = string(of[i])
	}
	return texts
}
