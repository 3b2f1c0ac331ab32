// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/clientcmd"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/document"
)

const userConfig = "openshift-config"

// MaxNamedCertificates is how many serving certificates of users the operator installs.
const MaxNamedCertificates = 10

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
				r.report(r.configSource("APIServer"), field.Invalid(document.Path("spec.additionalCORSAllowedOrigins[%d]", i), origin,
					`write a regular expression that begins and ends at the host, such as //console\.example\.com(:|$)`))
			}
		}
	}
	if proxy := r.cluster.Proxy; proxy != nil {
		r.requireConfigMap("Proxy", "spec.trustedCA.name", proxy.Spec.TrustedCA.Name, "ca-bundle.crt")
		for at, value := range map[string]string{"httpProxy": proxy.Spec.HTTPProxy, "httpsProxy": proxy.Spec.HTTPSProxy} {
			scheme, _, _ := strings.Cut(value, "://")
			if value != "" && (hostOf(value) == "" || scheme != "http" && (scheme != "https" || at == "httpProxy")) {
				r.report(r.configSource("Proxy"), field.Invalid(field.NewPath("spec", at), document.Omitted, // it may have a password
					"write the URL of a proxy, such as http://proxy.example.com:3128"))
			}
		}
	}
	if gate := r.cluster.FeatureGate; gate != nil && len(gate.Status.FeatureGates) > 1 {
		r.report(r.configSource("FeatureGate"), field.TooMany(field.NewPath("status", "featureGates"), len(gate.Status.FeatureGates), 1))
	}
	if image := r.cluster.Image; image != nil && image.Spec.AdditionalTrustedCA.Name != "" {
		// Its keys are names of registries.
		r.requireConfigMap("Image", "spec.additionalTrustedCA.name", image.Spec.AdditionalTrustedCA.Name, "")
	}
	if infrastructure := r.cluster.Infrastructure; infrastructure != nil && infrastructure.Spec.CloudConfig.Name != "" {
		r.requireConfigMap("Infrastructure", "spec.cloudConfig.name", infrastructure.Spec.CloudConfig.Name, infrastructure.Spec.CloudConfig.Key)
	}
}

func (r *reader) requireConfigMap(kind, at, name, key string) {
	if name == "" {
		return
	}
	id := identity{"", "ConfigMap", userConfig, name}
	content, ok := r.configMaps[id]
	if !ok {
		r.notInInput(kind, at, id)
		return
	}
	if _, ok := content.Data[key]; !ok && key != "" {
		r.noKey(kind, at, id, key)
	}
}

func (r *reader) notInInput(kind, at string, id identity) {
	r.report(r.configSource(kind), &field.Error{
		Type: field.ErrorTypeNotFound, Field: at, BadValue: id.String(), Detail: "it is not in the input; add it, or remove the field",
	})
}

func (r *reader) noKey(kind, at string, id identity, key string) {
	r.report(r.sources[id], field.Required(field.NewPath("data", key), fmt.Sprintf("%s %s needs it", kind, at)))
}

func (r *reader) requireSecret(kind, at, name, key string) (identity, []byte, bool) {
	id := identity{"", "Secret", userConfig, name}
	content, ok := r.secrets[id]
	if !ok {
		r.notInInput(kind, at, id)
		return id, nil, false
	}
	value, ok := content.Data[key]
	if !ok {
		r.noKey(kind, at, id, key)
	}
	return id, value, ok
}

func (r *reader) checkNamedCertificates(apiServer *configv1.APIServer) {
	s, named := r.configSource("APIServer"), apiServer.Spec.ServingCerts.NamedCertificates
	if len(named) > MaxNamedCertificates {
		r.report(s, field.TooMany(field.NewPath("spec", "servingCerts", "namedCertificates"), len(named), MaxNamedCertificates))
	}
	internal := ""
	if r.cluster.Infrastructure != nil {
		internal = hostOf(r.cluster.Infrastructure.Status.APIServerInternalURL)
	}
	for i, entry := range named {
		at := fmt.Sprintf("spec.servingCerts.namedCertificates[%d]", i)
		if entry.ServingCertificate.Name == "" {
			r.report(s, field.Required(document.Path("%s.servingCertificate.name", at), "name a Secret of "+userConfig))
			continue
		}
		_, _, _ = r.requireSecret("APIServer", at+".servingCertificate.name", entry.ServingCertificate.Name, "tls.crt")
		if internal != "" && slices.Contains(entry.Names, internal) {
			r.report(s, field.Invalid(document.Path("%s.names", at), internal, "it is the internal name, which nodes trust by the cluster's CA; remove the name"))
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
	providers := field.NewPath("spec", "oidcProviders")
	isOAuth := spec.Type == "" || spec.Type == configv1.AuthenticationTypeIntegratedOAuth
	switch {
	case spec.Type == configv1.AuthenticationTypeIntegratedOAuth:
		r.warn(s, "spec.type", "no OAuth tokens until an authentication operator runs, only certificates and service account tokens")
	case spec.Type == configv1.AuthenticationTypeOIDC && len(spec.OIDCProviders) == 0:
		r.report(s, field.Required(providers, "type OIDC needs one; add the provider"))
	}
	if spec.Type != configv1.AuthenticationTypeOIDC && len(spec.OIDCProviders) > 0 {
		r.report(s, field.Invalid(providers, document.Omitted, "they need type OIDC; set spec.type to OIDC, or remove the providers"))
	}
	if len(spec.OIDCProviders) > 1 {
		r.report(s, field.TooMany(providers, len(spec.OIDCProviders), 1))
	}
	if spec.OAuthMetadata.Name != "" {
		if isOAuth {
			r.requireConfigMap("Authentication", "spec.oauthMetadata.name", spec.OAuthMetadata.Name, configv1.OAuthMetadataKey)
		} else {
			r.report(s, field.Invalid(field.NewPath("spec", "oauthMetadata"), spec.OAuthMetadata.Name, fmt.Sprintf("the type is %s; remove it, or the type", spec.Type)))
		}
	}
	if webhook := spec.WebhookTokenAuthenticator; webhook != nil && webhook.KubeConfig.Name != "" {
		at := "spec.webhookTokenAuthenticator"
		if spec.Type != configv1.AuthenticationTypeNone {
			r.report(s, field.Forbidden(document.Path("%s", at), "with another type than None only the authentication operator configures it; "+
				"set spec.type to None, or remove the webhook"))
		}
		r.checkWebhook(at+".kubeConfig.name", webhook.KubeConfig.Name)
	}
	for i, provider := range spec.OIDCProviders {
		r.checkProvider(s, providers.Index(i), provider)
	}
	if strings.Contains(spec.ServiceAccountIssuer, ":") {
		if _, err := url.Parse(spec.ServiceAccountIssuer); err != nil {
			r.report(s, field.Invalid(field.NewPath("spec", "serviceAccountIssuer"), spec.ServiceAccountIssuer, "write a URL, or a text without a colon"))
		}
	}
}

func (r *reader) checkProvider(s *document.Document, at *field.Path, provider configv1.OIDCProvider) {
	issuer := at.Child("issuer")
	if parsed, err := url.Parse(provider.Issuer.URL); err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery+parsed.Fragment != "" {
		r.report(s, field.Invalid(issuer.Child("issuerURL"), provider.Issuer.URL, "kube-apiserver requires an https URL without user, query and fragment"))
	}
	if len(provider.Issuer.Audiences) == 0 {
		r.report(s, field.Required(issuer.Child("audiences"), "add the client's ID"))
	}
	r.requireConfigMap("Authentication", issuer.Child("issuerCertificateAuthority", "name").String(), provider.Issuer.CertificateAuthority.Name, "ca-bundle.crt")
	username := provider.ClaimMappings.Username
	if (username.Claim == "") == (username.Expression == "") {
		r.report(s, field.Invalid(at.Child("claimMappings", "username"), document.Omitted, "set one of claim and expression"))
	}
	if (username.PrefixPolicy == configv1.Prefix) != (username.Prefix != nil) {
		r.report(s, field.Invalid(at.Child("claimMappings", "username", "prefix"), document.Omitted, "set it with prefixPolicy Prefix, and only then"))
	}
}

// checkWebhook checks a kubeconfig that kube-apiserver reads, which must not name files.
func (r *reader) checkWebhook(at, name string) {
	id, content, ok := r.requireSecret("Authentication", at, name, configv1.KubeConfigKey)
	if !ok {
		return
	}
	s := r.sources[id]
	invalid := func(problem string) { // the content has a secret
		r.report(s, field.Invalid(document.Path("%s", dataField(s, configv1.KubeConfigKey)), document.Omitted, problem))
	}
	const advice = "; write a kubeconfig with one cluster, user and context"
	config, err := clientcmd.Load(content)
	if err != nil {
		invalid(err.Error() + advice)
		return
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok || config.Clusters[current.Cluster] == nil || config.AuthInfos[current.AuthInfo] == nil {
		invalid("it has no current context with a cluster and a user" + advice)
		return
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster.CertificateAuthority != "" || user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "" {
		invalid("it names files, which kube-apiserver does not have; embed them, as in certificate-authority-data")
	}
	if !strings.HasPrefix(cluster.Server, "https://") {
		invalid(fmt.Sprintf("the server %q is not an https URL", cluster.Server))
	}
}
