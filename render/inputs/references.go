// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	configv1 "github.com/openshift/api/config/v1"
)

const userConfig = "openshift-config"

const maxNamedCertificates = 10

func hostOf(value string) string {
	parsed, err := url.Parse(value)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}

// checkReferences finds references to ConfigMaps and Secrets that are not in the input.
func (r *reader) checkReferences() {
	if apiServer := r.cluster.APIServer; apiServer != nil {
		r.checkNamedCertificates(apiServer)
		r.requireConfigMap("APIServer", "spec.clientCA.name", apiServer.Spec.ClientCA.Name, "ca-bundle.crt")
		for i, origin := range apiServer.Spec.AdditionalCORSAllowedOrigins {
			// kube-apiserver does not start otherwise (U-REN-40).
			if _, err := regexp.Compile(origin); err != nil || !strings.Contains(origin, "^") && !strings.Contains(origin, "//") || !strings.ContainsAny(origin, "$:") {
				r.addFault(r.configSource("APIServer"), ErrInvalid, fmt.Sprintf("spec.additionalCORSAllowedOrigins[%d]", i),
					fmt.Sprintf("%q is no regular expression that begins and ends at the host", origin), `such as //console\.example\.com(:|$)`)
			}
		}
	}
	if proxy := r.cluster.Proxy; proxy != nil {
		r.requireConfigMap("Proxy", "spec.trustedCA.name", proxy.Spec.TrustedCA.Name, "ca-bundle.crt")
		for field, value := range map[string]string{"spec.httpProxy": proxy.Spec.HTTPProxy, "spec.httpsProxy": proxy.Spec.HTTPSProxy} {
			scheme, _, _ := strings.Cut(value, "://")
			if value != "" && (hostOf(value) == "" || scheme != "http" && (scheme != "https" || field == "spec.httpProxy")) {
				r.addFault(r.configSource("Proxy"), ErrInvalid, field, "not a URL of a proxy", "such as http://proxy.example.com:3128") // it may have a password
			}
		}
	}
	if gate := r.cluster.FeatureGate; gate != nil && len(gate.Status.FeatureGates) > 1 {
		r.addFault(r.configSource("FeatureGate"), ErrInvalid, "status.featureGates", fmt.Sprintf("gates of %d releases", len(gate.Status.FeatureGates)),
			"keep those of the rendered release")
	}
	if image := r.cluster.Image; image != nil && image.Spec.AdditionalTrustedCA.Name != "" {
		// Its keys are names of registries.
		r.requireConfigMap("Image", "spec.additionalTrustedCA.name", image.Spec.AdditionalTrustedCA.Name, "")
	}
	if infrastructure := r.cluster.Infrastructure; infrastructure != nil && infrastructure.Spec.CloudConfig.Name != "" {
		r.requireConfigMap("Infrastructure", "spec.cloudConfig.name", infrastructure.Spec.CloudConfig.Name, infrastructure.Spec.CloudConfig.Key)
	}
}

func (r *reader) requireConfigMap(kind, field, name, key string) {
	if name == "" {
		return
	}
	id := identity{"", "ConfigMap", userConfig, name}
	content, ok := r.configMaps[id]
	if !ok {
		r.addFault(r.configSource(kind), ErrMissing, field, fmt.Sprintf("%s is not in the input", id), "add it, or remove the field")
		return
	}
	if _, ok := content.Data[key]; !ok && key != "" {
		r.addFault(r.sources[id], ErrMissing, "data", fmt.Sprintf("no key %s, which %s %s needs", key, kind, field), "add it")
	}
}

func (r *reader) requireSecret(kind, field, name, key string) (identity, []byte, bool) {
	id := identity{"", "Secret", userConfig, name}
	content, ok := r.secrets[id]
	if !ok {
		r.addFault(r.configSource(kind), ErrMissing, field, fmt.Sprintf("%s is not in the input", id), "add it, or remove the field")
		return id, nil, false
	}
	value, ok := content.Data[key]
	if !ok {
		r.addFault(r.sources[id], ErrMissing, "data", fmt.Sprintf("no key %s, which %s %s needs", key, kind, field), "add it")
	}
	return id, value, ok
}

func (r *reader) checkNamedCertificates(apiServer *configv1.APIServer) {
	s, named := r.configSource("APIServer"), apiServer.Spec.ServingCerts.NamedCertificates
	if len(named) > maxNamedCertificates {
		r.addFault(s, ErrInvalid, "spec.servingCerts.namedCertificates", fmt.Sprintf("%d certificates", len(named)),
			fmt.Sprintf("at most %d", maxNamedCertificates))
	}
	internal := ""
	if r.cluster.Infrastructure != nil {
		internal = hostOf(r.cluster.Infrastructure.Status.APIServerInternalURL)
	}
	for i, entry := range named {
		field := fmt.Sprintf("spec.servingCerts.namedCertificates[%d]", i)
		if entry.ServingCertificate.Name == "" {
			r.addFault(s, ErrMissing, field+".servingCertificate.name", "empty", "name a Secret of "+userConfig)
			continue
		}
		_, _, _ = r.requireSecret("APIServer", field+".servingCertificate.name", entry.ServingCertificate.Name, "tls.crt")
		if internal != "" && slices.Contains(entry.Names, internal) {
			r.addFault(s, ErrInvalid, field+".names", internal+" is the internal name, which nodes trust by the cluster's CA",
				"remove the name")
		}
	}
}

// checkAuthentication refuses what needs an authentication operator. It implements R-REN-12.
func (r *reader) checkAuthentication() {
	authentication := r.cluster.Authentication
	if authentication == nil {
		return
	}
	s, spec := r.configSource("Authentication"), authentication.Spec
	isOAuth := spec.Type == "" || spec.Type == configv1.AuthenticationTypeIntegratedOAuth
	switch {
	case spec.Type == configv1.AuthenticationTypeIntegratedOAuth:
		r.cluster.Warnings = append(r.cluster.Warnings, s.fault(ErrIgnored, "spec.type",
			"no OAuth tokens until an authentication operator runs, only certificates and service account tokens", ""))
	case spec.Type == configv1.AuthenticationTypeOIDC && len(spec.OIDCProviders) == 0:
		r.addFault(s, ErrMissing, "spec.oidcProviders", "empty with type OIDC", "add the provider")
	}
	if spec.Type != configv1.AuthenticationTypeOIDC && len(spec.OIDCProviders) > 0 {
		r.addFault(s, ErrInvalid, "spec.oidcProviders", "set with another type than OIDC", "set spec.type to OIDC, or remove the providers")
	}
	if len(spec.OIDCProviders) > 1 {
		r.addFault(s, ErrInvalid, "spec.oidcProviders", "more than one provider", "the API allows one")
	}
	if spec.OAuthMetadata.Name != "" {
		if isOAuth {
			r.requireConfigMap("Authentication", "spec.oauthMetadata.name", spec.OAuthMetadata.Name, configv1.OAuthMetadataKey)
		} else {
			r.addFault(s, ErrInvalid, "spec.oauthMetadata", fmt.Sprintf("set with type %s", spec.Type), "remove it, or the type")
		}
	}
	if webhook := spec.WebhookTokenAuthenticator; webhook != nil && webhook.KubeConfig.Name != "" {
		field := "spec.webhookTokenAuthenticator"
		if spec.Type != configv1.AuthenticationTypeNone {
			r.addFault(s, ErrUnsupported, field, "refused: with another type than None only the authentication operator configures it",
				"set spec.type to None, or remove the webhook")
		}
		r.checkWebhook(field+".kubeConfig.name", webhook.KubeConfig.Name)
	}
	for i, provider := range spec.OIDCProviders {
		r.checkProvider(s, fmt.Sprintf("spec.oidcProviders[%d]", i), provider)
	}
	if strings.Contains(spec.ServiceAccountIssuer, ":") {
		if _, err := url.Parse(spec.ServiceAccountIssuer); err != nil {
			r.addFault(s, ErrInvalid, "spec.serviceAccountIssuer", err.Error(), "a URL, or a text without a colon")
		}
	}
}

func (r *reader) checkProvider(s *source, field string, provider configv1.OIDCProvider) {
	issuer := field + ".issuer"
	if parsed, err := url.Parse(provider.Issuer.URL); err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery+parsed.Fragment != "" {
		r.addFault(s, ErrInvalid, issuer+".issuerURL", fmt.Sprintf("%q is not an https URL without user, query and fragment", provider.Issuer.URL), "kube-apiserver requires one")
	}
	if len(provider.Issuer.Audiences) == 0 {
		r.addFault(s, ErrMissing, issuer+".audiences", "empty", "add the client's ID")
	}
	r.requireConfigMap("Authentication", issuer+".issuerCertificateAuthority.name", provider.Issuer.CertificateAuthority.Name, "ca-bundle.crt")
	username := provider.ClaimMappings.Username
	if (username.Claim == "") == (username.Expression == "") {
		r.addFault(s, ErrInvalid, field+".claimMappings.username", "neither or both of claim and expression", "set one of them")
	}
	if (username.PrefixPolicy == configv1.Prefix) != (username.Prefix != nil) {
		r.addFault(s, ErrInvalid, field+".claimMappings.username.prefix", "does not match prefixPolicy", "set it with policy Prefix only")
	}
}

// checkWebhook checks a kubeconfig that kube-apiserver reads, which must not name files.
func (r *reader) checkWebhook(field, name string) {
	id, content, ok := r.requireSecret("Authentication", field, name, configv1.KubeConfigKey)
	if !ok {
		return
	}
	s := r.sources[id]
	at := s.dataField(configv1.KubeConfigKey)
	config, err := clientcmd.Load(content)
	if err != nil {
		r.addFault(s, ErrInvalid, at, err.Error(), "a kubeconfig with one cluster, user and context")
		return
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok || config.Clusters[current.Cluster] == nil || config.AuthInfos[current.AuthInfo] == nil {
		r.addFault(s, ErrInvalid, at, "no current context with a cluster and a user", "a kubeconfig with one cluster, user and context")
		return
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster.CertificateAuthority != "" || user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "" {
		r.addFault(s, ErrInvalid, at, "names files, which kube-apiserver does not have", "embed them, as in certificate-authority-data")
	}
	if !strings.HasPrefix(cluster.Server, "https://") {
		r.addFault(s, ErrInvalid, at, fmt.Sprintf("the server %q is not an https URL", cluster.Server), "")
	}
}
