// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	configv1client "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/librarygo"
)

var proxyPath = []string{"targetconfigcontroller", "proxy"}

// Proxy observes the environment variables of Proxy.status; the spec does not have the complete noProxy.
var Proxy = From(configv1client.ConfigV1Interface.Proxies, func(proxy *configv1.Proxy) (map[string]any, error) {
	variables := map[string]any{}
	for name, value := range map[string]string{
		"HTTP_PROXY":  proxy.Status.HTTPProxy,
		"HTTPS_PROXY": proxy.Status.HTTPSProxy,
		"NO_PROXY":    proxy.Status.NoProxy,
	} {
		if value != "" {
			variables[name] = value
		}
	}
	if len(variables) == 0 {
		return map[string]any{}, nil
	}
	return Nested(variables, proxyPath...), nil
})

// ProxyEnv returns the variables that Proxy has observed, sorted by name.
func ProxyEnv(observed map[string]any) ([]corev1.EnvVar, error) {
	variables, _, err := unstructured.NestedStringMap(observed, proxyPath...)
	if err != nil {
		return nil, err
	}
	var env []corev1.EnvVar
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		env = append(env, corev1.EnvVar{Name: name, Value: variables[name]})
	}
	return env, nil
}

// ErrFeatureGates is returned for ambiguous feature gates.
var ErrFeatureGates = errors.New("ambiguous feature gates")

// FeatureGates returns NAME=true or NAME=false for every gate of the status, sorted by name, for OpenShift's programs,
// which log unknown ones. Kubernetes' programs do not start with an unknown gate, so they get none (U-REN-10).
func FeatureGates(gates *configv1.FeatureGate, profile inputs.Profile) ([]string, error) {
	values := map[string]bool{}
	if profile == inputs.OpenShift {
		if releases := len(gates.Status.FeatureGates); releases > 1 {
			return nil, fmt.Errorf("featuregate cluster: status.featureGates has %d releases: %w; keep the one to render",
				releases, ErrFeatureGates)
		}
		for _, release := range gates.Status.FeatureGates {
			for _, gate := range release.Disabled {
				values[string(gate.Name)] = false
			}
			for _, gate := range release.Enabled {
				values[string(gate.Name)] = true
			}
		}
	}
	list := make([]string, 0, len(values))
	for name, on := range values {
		list = append(list, fmt.Sprintf("%s=%t", name, on))
	}
	slices.Sort(list)
	return list, nil
}

// FeatureGatesAt returns an observer that writes the gates to each path.
func FeatureGatesAt(profile inputs.Profile, paths ...[]string) librarygo.Observer {
	return From(configv1client.ConfigV1Interface.FeatureGates, func(gates *configv1.FeatureGate) (map[string]any, error) {
		values, err := FeatureGates(gates, profile)
		if err != nil {
			return nil, err
		}
		config := map[string]any{}
		for _, path := range paths {
			if len(values) > 0 {
				config = Merge(config, Nested(List(values), path...))
			}
		}
		return config, nil
	})
}

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
var TLSProfile = From(configv1client.ConfigV1Interface.APIServers, func(server *configv1.APIServer) (map[string]any, error) {
	version, ciphers, err := TLS(server.Spec.TLSSecurityProfile)
	if err != nil {
		return nil, err
	}
	return Nested(map[string]any{"minTLSVersion": version, "cipherSuites": List(ciphers)}, "servingInfo"), nil
})

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
