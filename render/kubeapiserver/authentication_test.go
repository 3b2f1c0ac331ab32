// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	configv1 "github.com/openshift/api/config/v1"
)

// R-REN-12.
func TestAuthenticationConfig(t *testing.T) {
	const (
		head     = `{"kind":"AuthenticationConfiguration","apiVersion":"apiserver.config.k8s.io/v1beta1","jwt":[`
		issuer   = `{"issuer":{"url":"https://id.test","audiences":["a","b"],"audienceMatchPolicy":"MatchAny"},`
		username = `"claimMappings":{"username":{"claim":"name","prefix":`
		groups   = `"groups":{"claim":"groups","prefix":"oidc:"},`
		rest     = `},` + groups + `"uid":{"claim":"sub"}}}`
	)
	for _, tt := range []struct {
		name string
		// YAML that is merged into the provider.
		change, want string
		err          error
	}{
		{name: "no opinion about the prefix", want: issuer + username + `"https://id.test#"` + rest},
		{
			name: "email", change: `claimMappings: {username: {claim: email}}`,
			want: issuer + `"claimMappings":{"username":{"claim":"email","prefix":""` + rest,
		},
		{name: "no prefix", change: `claimMappings: {username: {prefixPolicy: NoPrefix}}`, want: issuer + username + `""` + rest},
		{
			name: "prefix", change: `claimMappings: {username: {prefixPolicy: Prefix, prefix: {prefixString: "id:"}}}`,
			want: issuer + username + `"id:"` + rest,
		},
		{name: "prefix that does not exist", change: `claimMappings: {username: {prefixPolicy: Prefix}}`, err: ErrMissing},
		{name: "unknown policy", change: `claimMappings: {username: {prefixPolicy: Some}}`, err: ErrInvalid},
		{
			name: "expressions, rules, extra", change: `
claimMappings:
  username: {claim: "", expression: claims.name}
  groups: {claim: "", prefix: "", expression: claims.groups}
  uid: {expression: claims.id}
  extra: [{key: id.test/team, valueExpression: claims.team}]
claimValidationRules:
- {type: RequiredClaim, requiredClaim: {claim: hd, requiredValue: test}}
- {type: CEL, cel: {expression: claims.ok, message: not ok}}
userValidationRules: [{expression: "!user.username.startsWith('system:')", message: reserved}]`,
			want: issuer + `"claimValidationRules":[{"claim":"hd","requiredValue":"test"},{"expression":"claims.ok","message":"not ok"}],` +
				`"claimMappings":{"username":{"expression":"claims.name"},"groups":{"expression":"claims.groups"},"uid":{"expression":"claims.id"},` +
				`"extra":[{"key":"id.test/team","valueExpression":"claims.team"}]},` +
				`"userValidationRules":[{"expression":"!user.username.startsWith('system:')","message":"reserved"}]}`,
		},
		{name: "rule without a claim", change: `claimValidationRules: [{type: RequiredClaim}]`, err: ErrMissing},
		{name: "unknown rule", change: `claimValidationRules: [{type: Some}]`, err: ErrInvalid},
		{
			name: "CA and discovery", change: `issuer: {issuerCertificateAuthority: {name: ca}, discoveryURL: "https://discovery.test/keys"}`,
			want: `{"issuer":{"url":"https://id.test","discoveryURL":"https://discovery.test/keys","certificateAuthority":"PEM of ca",` +
				`"audiences":["a","b"],"audienceMatchPolicy":"MatchAny"},` + username + `"https://id.test#"` + rest,
		},
		{name: "CA that does not exist", change: `issuer: {issuerCertificateAuthority: {name: gone}}`, err: ErrMissing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var provider configv1.OIDCProvider
			for _, text := range []string{
				`{issuer: {issuerURL: "https://id.test", audiences: [a, b]}, claimMappings: {username: {claim: name}, groups: {claim: groups, prefix: "oidc:"}}}`,
				tt.change,
			} {
				if err := yaml.UnmarshalStrict([]byte(text), &provider); err != nil {
					t.Fatal(err)
				}
			}
			got, err := authenticationConfig(&configv1.Authentication{Spec: configv1.AuthenticationSpec{OIDCProviders: []configv1.OIDCProvider{provider}}},
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
