// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"encoding/json"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"
	"k8s.io/utils/ptr"
)

// The ConfigMap with kube-apiserver's token issuers, which the authentication operator writes on a cluster (U-REN-36).
const (
	authConfig    = "auth-config"
	authConfigKey = "auth-config.json"
)

// oauthMetadata returns the ConfigMap in openshift-config with the metadata of an external OAuth server.
func oauthMetadata(authentication *configv1.Authentication) (name string, found bool) {
	switch authentication.Spec.Type {
	case "", configv1.AuthenticationTypeIntegratedOAuth:
		name = authentication.Spec.OAuthMetadata.Name
	case configv1.AuthenticationTypeNone, configv1.AuthenticationTypeOIDC:
	}
	return name, name != ""
}

// authenticationConfig returns auth-config.json (R-REN-12). bundle returns certificates of openshift-config.
func authenticationConfig(authentication *configv1.Authentication, bundle func(name string) (string, error)) (string, error) {
	config := apiserverv1beta1.AuthenticationConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1beta1.ConfigSchemeGroupVersion.String(), Kind: "AuthenticationConfiguration"},
	}
	for i := range authentication.Spec.OIDCProviders {
		authenticator, err := jwtAuthenticator(&authentication.Spec.OIDCProviders[i], bundle)
		if err != nil {
			return "", fmt.Errorf("authentication.config.openshift.io %q: spec.oidcProviders[%d]: %w", authentication.Name, i, err)
		}
		config.JWT = append(config.JWT, authenticator)
	}
	if len(config.JWT) == 0 {
		return "", fmt.Errorf("authentication.config.openshift.io %q: spec.oidcProviders: %w: type OIDC needs one", authentication.Name, ErrMissing)
	}
	text, err := json.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("write %s: %w", authConfigKey, err)
	}
	return string(text), nil
}

func jwtAuthenticator(provider *configv1.OIDCProvider, bundle func(name string) (string, error)) (apiserverv1beta1.JWTAuthenticator, error) {
	authenticator := apiserverv1beta1.JWTAuthenticator{
		Issuer: apiserverv1beta1.Issuer{URL: provider.Issuer.URL, AudienceMatchPolicy: apiserverv1beta1.AudienceMatchPolicyMatchAny},
		ClaimMappings: apiserverv1beta1.ClaimMappings{
			// kube-apiserver requires a prefix with a claim, even an empty one.
			Groups: apiserverv1beta1.PrefixedClaimOrExpression{
				Claim: provider.ClaimMappings.Groups.Claim, Expression: provider.ClaimMappings.Groups.Expression,
			},
		},
	}
	for _, audience := range provider.Issuer.Audiences {
		authenticator.Issuer.Audiences = append(authenticator.Issuer.Audiences, string(audience))
	}
	if provider.Issuer.DiscoveryURL != "" {
		authenticator.Issuer.DiscoveryURL = &provider.Issuer.DiscoveryURL
	}
	if name := provider.Issuer.CertificateAuthority.Name; name != "" {
		certificates, err := bundle(name)
		if err != nil {
			return authenticator, fmt.Errorf("issuer.issuerCertificateAuthority: %w", err)
		}
		authenticator.Issuer.CertificateAuthority = certificates
	}
	if groups := &authenticator.ClaimMappings.Groups; groups.Claim != "" {
		groups.Prefix = &provider.ClaimMappings.Groups.Prefix
	}
	username, err := usernameMapping(provider)
	if err != nil {
		return authenticator, fmt.Errorf("claimMappings.username: %w", err)
	}
	authenticator.ClaimMappings.Username = username
	// The authentication operator has the same default.
	authenticator.ClaimMappings.UID = apiserverv1beta1.ClaimOrExpression{Claim: "sub"}
	if uid := provider.ClaimMappings.UID; uid != nil {
		authenticator.ClaimMappings.UID = apiserverv1beta1.ClaimOrExpression{Claim: uid.Claim, Expression: uid.Expression}
	}
	for _, extra := range provider.ClaimMappings.Extra {
		authenticator.ClaimMappings.Extra = append(authenticator.ClaimMappings.Extra,
			apiserverv1beta1.ExtraMapping{Key: extra.Key, ValueExpression: extra.ValueExpression})
	}
	for i, rule := range provider.ClaimValidationRules {
		validation, err := claimValidation(rule)
		if err != nil {
			return authenticator, fmt.Errorf("claimValidationRules[%d]: %w", i, err)
		}
		authenticator.ClaimValidationRules = append(authenticator.ClaimValidationRules, validation)
	}
	for _, rule := range provider.UserValidationRules {
		authenticator.UserValidationRules = append(authenticator.UserValidationRules,
			apiserverv1beta1.UserValidationRule{Expression: rule.Expression, Message: rule.Message})
	}
	return authenticator, nil
}

// usernameMapping returns the user name's claim. The default prefix is the issuer's URL, except for claim email.
func usernameMapping(provider *configv1.OIDCProvider) (apiserverv1beta1.PrefixedClaimOrExpression, error) {
	username := provider.ClaimMappings.Username
	if username.Expression != "" {
		return apiserverv1beta1.PrefixedClaimOrExpression{Expression: username.Expression}, nil
	}
	mapping := apiserverv1beta1.PrefixedClaimOrExpression{Claim: username.Claim}
	switch username.PrefixPolicy {
	case configv1.Prefix:
		if username.Prefix == nil {
			return mapping, fmt.Errorf("prefix: %w: prefixPolicy Prefix needs it", ErrMissing)
		}
		mapping.Prefix = &username.Prefix.PrefixString
	case configv1.NoPrefix:
		mapping.Prefix = ptr.To("")
	case configv1.NoOpinion:
		mapping.Prefix = ptr.To("")
		if username.Claim != "email" {
			mapping.Prefix = ptr.To(provider.Issuer.URL + "#")
		}
	default:
		return mapping, fmt.Errorf("prefixPolicy: %w: %q", ErrInvalid, username.PrefixPolicy)
	}
	return mapping, nil
}

func claimValidation(rule configv1.TokenClaimValidationRule) (apiserverv1beta1.ClaimValidationRule, error) {
	switch rule.Type {
	case configv1.TokenValidationRuleTypeRequiredClaim:
		if rule.RequiredClaim == nil {
			return apiserverv1beta1.ClaimValidationRule{}, fmt.Errorf("requiredClaim: %w", ErrMissing)
		}
		return apiserverv1beta1.ClaimValidationRule{Claim: rule.RequiredClaim.Claim, RequiredValue: rule.RequiredClaim.RequiredValue}, nil
	case configv1.TokenValidationRuleTypeCEL:
		return apiserverv1beta1.ClaimValidationRule{Expression: rule.CEL.Expression, Message: rule.CEL.Message}, nil
	}
	return apiserverv1beta1.ClaimValidationRule{}, fmt.Errorf("type: %w: %q", ErrInvalid, rule.Type)
}
