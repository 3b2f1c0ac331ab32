// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strings"

	kubecontrolplanev1 "github.com/openshift/api/kubecontrolplane/v1"
	"sigs.k8s.io/yaml"
)

// ErrNoFlag is returned for a value that the upstream kube-apiserver has no flag for.
var ErrNoFlag = errors.New("kube-apiserver has no flag for it")

// ignoredFields are fields of OpenShift's kube-apiserver only, with the reason why they can be ignored.
var ignoredFields = map[string]string{
	"authConfig":            "no OAuth server is announced",
	"imagePolicyConfig":     "images of streams are OpenShift's",
	"projectConfig":         "projects are OpenShift's",
	"minimumKubeletVersion": "the authorizer is OpenShift's",
}

// ignoredArguments are arguments of OpenShift's kube-apiserver only, or without effect.
var ignoredArguments = map[string]string{
	"send-retry-after-while-not-ready-once": "OpenShift's patch",
	"kubelet-read-only-port":                "deprecated; the port is not used",
}

// passedArguments become flags of the same name.
var passedArguments = []string{
	"allow-privileged", "anonymous-auth", "api-audiences", "audit-log-format", "audit-log-maxbackup", "audit-log-maxsize", "audit-log-path",
	"audit-policy-file", "authentication-config", "authentication-token-webhook-config-file", "authentication-token-webhook-version",
	"authorization-mode", "client-ca-file", "default-not-ready-toleration-seconds", "default-unreachable-toleration-seconds",
	"disable-admission-plugins", "enable-admission-plugins", "enable-aggregator-routing", "encryption-provider-config",
	"endpoint-reconciler-type", "etcd-cafile", "etcd-certfile", "etcd-healthcheck-timeout", "etcd-keyfile", "etcd-prefix",
	"etcd-readycheck-timeout", "etcd-servers", "event-ttl", "feature-gates", "goaway-chance", "http2-max-streams-per-connection",
	"kubelet-certificate-authority", "kubelet-client-certificate", "kubelet-client-key", "kubelet-preferred-address-types",
	"kubernetes-service-node-port", "max-mutating-requests-inflight", "max-requests-inflight", "min-request-timeout",
	"proxy-client-cert-file", "proxy-client-key-file", "requestheader-allowed-names", "requestheader-client-ca-file",
	"requestheader-extra-headers-prefix", "requestheader-group-headers", "requestheader-username-headers", "service-account-issuer",
	"service-account-jwks-uri", "service-account-lookup", "service-account-signing-key-file", "service-node-port-range",
	"shutdown-delay-duration", "shutdown-send-retry-after", "storage-backend", "storage-media-type",
	"strict-transport-security-directives", "tls-cert-file", "tls-private-key-file",
}

// authorizers are the authorization modes of the upstream kube-apiserver, which always authorizes system:masters.
var authorizers = []string{"RBAC", "Node"}

// pluginsWithConfig are the admission plugins whose configuration the upstream kube-apiserver reads.
var pluginsWithConfig = []string{"PodSecurity"}

// Flags returns the flags of the upstream kube-apiserver for a configuration, sorted by name, and the admission
// configuration that they refer to. keyFiles returns the files of a folder of public keys. Values that only OpenShift's
// kube-apiserver has, such as its admission plugins, are ignored; any other value without a flag is an error.
func Flags(config map[string]any, keyFiles func(folder string) ([]string, error)) (flags []string, admission string, err error) {
	var typed kubecontrolplanev1.KubeAPIServerConfig
	text, err := yaml.Marshal(config)
	if err != nil {
		return nil, "", fmt.Errorf("write the config: %w", err)
	}
	if err := yaml.UnmarshalStrict(text, &typed); err != nil {
		return nil, "", fmt.Errorf("read the config: %w", err)
	}
	values := map[string][]string{}
	var errs []error
	for field := range config {
		if _, ignored := ignoredFields[field]; ignored {
			continue
		}
		switch field {
		case "apiVersion", "kind":
		case "apiServerArguments":
			errs = append(errs, setArguments(values, typed.APIServerArguments))
		case "servingInfo":
			errs = append(errs, setServing(values, config[field], typed))
		case "corsAllowedOrigins":
			values["cors-allowed-origins"] = commaSeparated(typed.CORSAllowedOrigins)
		case "servicesSubnet":
			values["service-cluster-ip-range"] = []string{typed.ServicesSubnet}
		case "serviceAccountPublicKeyFiles":
			for _, folder := range typed.ServiceAccountPublicKeyFiles {
				names, err := keyFiles(folder)
				errs = append(errs, err)
				for _, name := range names {
					// OpenShift's kube-apiserver reads all files of the folder (U-REN-35).
					values["service-account-key-file"] = append(values["service-account-key-file"], path.Join(folder, name))
				}
			}
		case "admission":
			if admission, err = admissionConfig(typed); err != nil {
				errs = append(errs, err)
			} else if admission != "" {
				values["admission-control-config-file"] = []string{revisioned("configmaps", "config", admissionKey)}
			}
		default:
			errs = append(errs, fmt.Errorf("%s: %w", field, ErrNoFlag))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, "", fmt.Errorf("flags of kube-apiserver: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			flags = append(flags, "--"+name+"="+value)
		}
	}
	return flags, admission, nil
}

func setArguments(values map[string][]string, arguments map[string]kubecontrolplanev1.Arguments) error {
	var errs []error
	for name, argument := range arguments {
		if _, ignored := ignoredArguments[name]; ignored {
			continue
		}
		if !slices.Contains(passedArguments, name) {
			errs = append(errs, fmt.Errorf("apiServerArguments.%s: %w", name, ErrNoFlag))
			continue
		}
		switch name {
		case "authorization-mode":
			argument = filter(argument, func(mode string) bool { return slices.Contains(authorizers, mode) })
		case "enable-admission-plugins", "disable-admission-plugins":
			argument = filter(argument, func(plugin string) bool { return !strings.Contains(plugin, "/") })
		}
		switch name {
		case "authorization-mode", "enable-admission-plugins", "disable-admission-plugins", "etcd-servers", "feature-gates":
			if len(argument) > 0 {
				argument = []string{strings.Join(argument, ",")}
			}
		}
		values[name] = argument
	}
	return errors.Join(errs...)
}

func filter(values []string, wanted func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(values), func(value string) bool { return !wanted(value) })
}

// setServing sets the flags of servingInfo. bindNetwork has none: the address implies the family.
func setServing(values map[string][]string, fields any, config kubecontrolplanev1.KubeAPIServerConfig) error {
	serving := config.ServingInfo
	set, _ := fields.(map[string]any)
	var errs []error
	for field := range set {
		switch field {
		case "bindNetwork":
		case "bindAddress":
			host, port, err := net.SplitHostPort(serving.BindAddress)
			if err != nil {
				errs = append(errs, fmt.Errorf("servingInfo.bindAddress: %w", err))
			}
			values["bind-address"], values["secure-port"] = []string{host}, []string{port}
		case "minTLSVersion":
			values["tls-min-version"] = []string{serving.MinTLSVersion}
		case "cipherSuites":
			values["tls-cipher-suites"] = []string{strings.Join(serving.CipherSuites, ",")}
		case "namedCertificates":
			for _, certificate := range serving.NamedCertificates {
				value := certificate.CertFile + "," + certificate.KeyFile
				if len(certificate.Names) > 0 {
					value += ":" + strings.Join(certificate.Names, ",")
				}
				values["tls-sni-cert-key"] = append(values["tls-sni-cert-key"], value)
			}
		default:
			errs = append(errs, fmt.Errorf("servingInfo.%s: %w", field, ErrNoFlag))
		}
	}
	return errors.Join(errs...)
}

// commaSeparated quotes values so that a flag that splits at commas keeps each whole.
func commaSeparated(values []string) []string {
	quoted := make([]string, len(values))
	for i, value := range values {
		var text strings.Builder
		w := csv.NewWriter(&text)
		if err := w.Write([]string{value}); err == nil {
			w.Flush()
		}
		quoted[i] = strings.TrimSuffix(text.String(), "\n")
	}
	return quoted
}

const admissionKey = "admission.yaml"

func admissionConfig(config kubecontrolplanev1.KubeAPIServerConfig) (string, error) {
	plugins := []any{}
	for _, name := range slices.Sorted(maps.Keys(config.AdmissionConfig.PluginConfig)) {
		switch {
		case strings.Contains(name, "/"): // OpenShift's
		case slices.Contains(pluginsWithConfig, name):
			plugins = append(plugins, map[string]any{"name": name, "configuration": config.AdmissionConfig.PluginConfig[name].Configuration})
		default:
			return "", fmt.Errorf("admission.pluginConfig.%s: %w", name, ErrNoFlag)
		}
	}
	if len(plugins) == 0 {
		return "", nil
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins})
	if err != nil {
		return "", fmt.Errorf("write the admission configuration: %w", err)
	}
	return string(text), nil
}
