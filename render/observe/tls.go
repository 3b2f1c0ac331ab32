// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/render/store"
)

// ErrTLSProfile is returned for a TLS profile that cannot be used.
var ErrTLSProfile = errors.New("unusable TLS profile")

// TLS returns the minimal version, in the form of Kubernetes' flags, and the IANA names of the cipher suites of a
// profile. The default is Intermediate. Ciphers that Go does not implement are left out; a profile without any other is
// an error (U-REN-9).
func TLS(profile *configv1.TLSSecurityProfile) (version string, ciphers []string, err error) {
	kind := configv1.TLSProfileIntermediateType
	if profile != nil && profile.Type != "" {
		kind = profile.Type
	}
	spec := configv1.TLSProfiles[kind]
	if kind == configv1.TLSProfileCustomType && profile.Custom != nil {
		spec = &profile.Custom.TLSProfileSpec
	}
	if spec == nil {
		return "", nil, fmt.Errorf("apiserver cluster: spec.tlsSecurityProfile: %w: unknown profile %s", ErrTLSProfile, kind)
	}
	known := map[string]bool{}
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		known[suite.Name] = true
	}
	for _, cipher := range spec.Ciphers {
		name, renamed := iana[cipher]
		if !renamed {
			name = cipher
		}
		if known[name] {
			ciphers = append(ciphers, name)
		}
	}
	if len(ciphers) == 0 {
		return "", nil, fmt.Errorf("apiserver cluster: spec.tlsSecurityProfile: %w: none of its ciphers is known; name some of %v",
			ErrTLSProfile, configv1.TLSProfiles[configv1.TLSProfileIntermediateType].Ciphers)
	}
	version = string(spec.MinTLSVersion)
	if version == "" {
		version = string(configv1.VersionTLS12)
	}
	return version, ciphers, nil
}

// TLSProfile observes servingInfo.minTLSVersion and servingInfo.cipherSuites.
func TLSProfile(ctx context.Context, s *store.Session, _ map[string]any) (map[string]any, error) {
	server, err := s.Config().ConfigV1().APIServers().Get(ctx, "cluster", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	version, ciphers, err := TLS(server.Spec.TLSSecurityProfile)
	if err != nil {
		return nil, err
	}
	list := make([]any, len(ciphers))
	for i := range ciphers {
		list[i] = ciphers[i]
	}
	return Nested(map[string]any{"minTLSVersion": version, "cipherSuites": list}, "servingInfo"), nil
}

// TLSFlags returns the flags of Kubernetes' components for the observed profile.
func TLSFlags(config map[string]any) ([]string, error) {
	ciphers, _, err := unstructured.NestedStringSlice(config, "servingInfo", "cipherSuites")
	if err != nil {
		return nil, err
	}
	version, _, err := unstructured.NestedString(config, "servingInfo", "minTLSVersion")
	if err != nil {
		return nil, err
	}
	var flags []string
	if len(ciphers) > 0 {
		flags = append(flags, "--tls-cipher-suites="+strings.Join(ciphers, ","))
	}
	if version != "" {
		flags = append(flags, "--tls-min-version="+version)
	}
	return flags, nil
}

// iana maps OpenSSL's names of cipher suites to IANA's. Those of TLS 1.3 have the same name.
var iana = map[string]string{
	"ECDHE-ECDSA-AES128-GCM-SHA256": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
	"ECDHE-RSA-AES128-GCM-SHA256":   "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
	"ECDHE-ECDSA-AES256-GCM-SHA384": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
	"ECDHE-RSA-AES256-GCM-SHA384":   "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
	"ECDHE-ECDSA-CHACHA20-POLY1305": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
	"ECDHE-RSA-CHACHA20-POLY1305":   "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
	"ECDHE-ECDSA-AES128-SHA256":     "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
	"ECDHE-RSA-AES128-SHA256":       "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
	"ECDHE-ECDSA-AES128-SHA":        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
	"ECDHE-RSA-AES128-SHA":          "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
	"ECDHE-ECDSA-AES256-SHA":        "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
	"ECDHE-RSA-AES256-SHA":          "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
	"AES128-GCM-SHA256":             "TLS_RSA_WITH_AES_128_GCM_SHA256",
	"AES256-GCM-SHA384":             "TLS_RSA_WITH_AES_256_GCM_SHA384",
	"AES128-SHA256":                 "TLS_RSA_WITH_AES_128_CBC_SHA256",
	"AES128-SHA":                    "TLS_RSA_WITH_AES_128_CBC_SHA",
	"AES256-SHA":                    "TLS_RSA_WITH_AES_256_CBC_SHA",
	"DES-CBC3-SHA":                  "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
}
