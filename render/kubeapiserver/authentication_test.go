// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	configv1 "github.com/openshift/api/config/v1"
)

// R-REN-12.
func TestAuthenticationConfig(t *testing.T) {
	const head = `{"kind":"AuthenticationConfiguration","apiVersion":"apiserver.config.k8s.io/v1beta1","jwt":[`
	provider := configv1.OIDCProvider{
		Issuer: configv1.TokenIssuer{URL: "https://id.test", Audiences: []configv1.TokenAudience{"a", "b"}},
		ClaimMappings: configv1.TokenClaimMappings{
			Username: configv1.UsernameClaimMapping{Claim: "name"},
			Groups:   configv1.PrefixedClaimMapping{TokenClaimMapping: configv1.TokenClaimMapping{Claim: "groups"}, Prefix: "oidc:"},
		},
	}
	changed := func(change func(*configv1.OIDCProvider)) configv1.OIDCProvider {
		p := *provider.DeepCopy()
		change(&p)
		return p
	}
	const issuer = `{"issuer":{"url":"https://id.test","audiences":["a","b"],"audienceMatchPolicy":"MatchAny"},`
	const groups = `"groups":{"claim":"groups","prefix":"oidc:"},`
	for _, tt := range []struct {
		name     string
		provider configv1.OIDCProvider
		want     string
		err      error
	}{
		{
			name: "no opinion about the prefix", provider: provider,
			want: issuer + `"claimMappings":{"username":{"claim":"name","prefix":"https://id.test#"},` + groups + `"uid":{"claim":"sub"}}}`,
		},
		{
			name: "email", provider: changed(func(p *configv1.OIDCProvider) { p.ClaimMappings.Username.Claim = "email" }),
			want: issuer + `"claimMappings":{"username":{"claim":"email","prefix":""},` + groups + `"uid":{"claim":"sub"}}}`,
		},
		{
			name: "no prefix", provider: changed(func(p *configv1.OIDCProvider) { p.ClaimMappings.Username.PrefixPolicy = configv1.NoPrefix }),
			want: issuer + `"claimMappings":{"username":{"claim":"name","prefix":""},` + groups + `"uid":{"claim":"sub"}}}`,
		},
		{
			name: "prefix", provider: changed(func(p *configv1.OIDCProvider) {
				p.ClaimMappings.Username.PrefixPolicy = configv1.Prefix
				p.ClaimMappings.Username.Prefix = &configv1.UsernamePrefix{PrefixString: "id:"}
			}),
			want: issuer + `"claimMappings":{"username":{"claim":"name","prefix":"id:"},` + groups + `"uid":{"claim":"sub"}}}`,
		},
		{
			name:     "prefix that does not exist",
			provider: changed(func(p *configv1.OIDCProvider) { p.ClaimMappings.Username.PrefixPolicy = configv1.Prefix }), err: ErrMissing,
		},
		{
			name:     "unknown policy",
			provider: changed(func(p *configv1.OIDCProvider) { p.ClaimMappings.Username.PrefixPolicy = "Some" }), err: ErrInvalid,
		},
		{
			name: "expressions, rules, extra", provider: changed(func(p *configv1.OIDCProvider) {
				p.ClaimMappings.Username = configv1.UsernameClaimMapping{Expression: "claims.name"}
				p.ClaimMappings.Groups = configv1.PrefixedClaimMapping{TokenClaimMapping: configv1.TokenClaimMapping{Expression: "claims.groups"}}
				p.ClaimMappings.UID = &configv1.TokenClaimOrExpressionMapping{Expression: "claims.id"}
				p.ClaimMappings.Extra = []configv1.ExtraMapping{{Key: "id.test/team", ValueExpression: "claims.team"}}
				p.ClaimValidationRules = []configv1.TokenClaimValidationRule{
					{Type: configv1.TokenValidationRuleTypeRequiredClaim, RequiredClaim: &configv1.TokenRequiredClaim{Claim: "hd", RequiredValue: "test"}},
					{Type: configv1.TokenValidationRuleTypeCEL, CEL: configv1.TokenClaimValidationCELRule{Expression: "claims.ok", Message: "not ok"}},
				}
				p.UserValidationRules = []configv1.TokenUserValidationRule{{Expression: "!user.username.startsWith('system:')", Message: "reserved"}}
			}),
			want: issuer + `"claimValidationRules":[{"claim":"hd","requiredValue":"test"},{"expression":"claims.ok","message":"not ok"}],` +
				`"claimMappings":{"username":{"expression":"claims.name"},"groups":{"expression":"claims.groups"},"uid":{"expression":"claims.id"},` +
				`"extra":[{"key":"id.test/team","valueExpression":"claims.team"}]},` +
				`"userValidationRules":[{"expression":"!user.username.startsWith('system:')","message":"reserved"}]}`,
		},
		{
			name: "rule without a claim", provider: changed(func(p *configv1.OIDCProvider) {
				p.ClaimValidationRules = []configv1.TokenClaimValidationRule{{Type: configv1.TokenValidationRuleTypeRequiredClaim}}
			}), err: ErrMissing,
		},
		{
			name: "unknown rule", provider: changed(func(p *configv1.OIDCProvider) {
				p.ClaimValidationRules = []configv1.TokenClaimValidationRule{{Type: "Some"}}
			}), err: ErrInvalid,
		},
		{
			name: "CA and discovery", provider: changed(func(p *configv1.OIDCProvider) {
				p.Issuer.CertificateAuthority.Name = "ca"
				p.Issuer.DiscoveryURL = "https://discovery.test/keys"
			}),
			want: `{"issuer":{"url":"https://id.test","discoveryURL":"https://discovery.test/keys","certificateAuthority":"PEM of ca",` +
				`"audiences":["a","b"],"audienceMatchPolicy":"MatchAny"},` +
				`"claimMappings":{"username":{"claim":"name","prefix":"https://id.test#"},` + groups + `"uid":{"claim":"sub"}}}`,
		},
		{
			name:     "CA that does not exist",
			provider: changed(func(p *configv1.OIDCProvider) { p.Issuer.CertificateAuthority.Name = "gone" }), err: ErrMissing,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := authenticationConfig(&configv1.Authentication{Spec: configv1.AuthenticationSpec{OIDCProviders: []configv1.OIDCProvider{tt.provider}}},
				func(name string) (string, error) {
					if name == "gone" {
						return "", ErrMissing
					}
					return "PEM of " + name, nil
				})
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			want := ""
			if tt.err == nil {
				want = head + tt.want + `]}`
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := authenticationConfig(&configv1.Authentication{}, nil); !errors.Is(err, ErrMissing) {
		t.Errorf("no provider: %v", err)
	}
}
