// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/render/observe"
	"github.com/solonode/sno/render/podtemplate"
)

// Placeholders for the node's name: plain, and as part of an environment variable's name.
const (
	nodeName    = "NODE_NAME"
	nodeEnvName = "NODE_ENVVAR_NAME"
)

const (
	certDir     = podtemplate.CertDir + "/secrets/etcd-all-certs/"
	bundleDir   = podtemplate.CertDir + "/configmaps/etcd-all-bundles/"
	peerFile    = certDir + "etcd-peer-" + nodeName
	servingFile = certDir + "etcd-serving-" + nodeName
	metricsFile = certDir + "etcd-serving-metrics-" + nodeName
	serverCA    = bundleDir + "server-ca-bundle.crt"
	metricsCAs  = bundleDir + "metrics-ca-bundle.crt"
)

type tlsSettings struct {
	version string
	ciphers []string
}

// tlsOf returns the observed profile. etcd supports TLS 1.2 and 1.3, and rejects ciphers with 1.3 (U-REN-24).
func tlsOf(observed map[string]any) (tlsSettings, error) {
	version, has, err := unstructured.NestedString(observed, "servingInfo", "minTLSVersion")
	if err != nil {
		return tlsSettings{}, err
	}
	if !has {
		return tlsSettings{}, fmt.Errorf("servingInfo.minTLSVersion: %w", observe.ErrNotObserved)
	}
	if version == string(configv1.VersionTLS13) {
		return tlsSettings{version: "TLS1.3"}, nil
	}
	ciphers, _, err := unstructured.NestedStringSlice(observed, "servingInfo", "cipherSuites")
	return tlsSettings{version: "TLS1.2", ciphers: ciphers}, err
}

// environment returns the sorted environment of all containers of profile openshift, the same on all nodes (U-REN-25).
func environment(all []member, infrastructure *configv1.Infrastructure, tls tlsSettings, image string) []corev1.EnvVar {
	heartbeat, election := timeouts(infrastructure)
	values := map[string]string{
		"ALL_ETCD_ENDPOINTS":                  clientURLs(all),
		"ETCDCTL_API":                         "3",
		"ETCDCTL_CACERT":                      serverCA,
		"ETCDCTL_CERT":                        peerFile + ".crt",
		"ETCDCTL_ENDPOINTS":                   clientURLs(all),
		"ETCDCTL_KEY":                         peerFile + ".key",
		"ETCD_DATA_DIR":                       dataDir,
		"ETCD_ELECTION_TIMEOUT":               election,
		"ETCD_ENABLE_PPROF":                   "true",
		"ETCD_MAX_LEARNERS":                   strconv.Itoa(len(all)),
		"ETCD_WARNING_APPLY_DURATION":         "200ms",
		"ETCD_WATCH_PROGRESS_NOTIFY_INTERVAL": "5s",
		"ETCD_HEARTBEAT_INTERVAL":             heartbeat,
		"ETCD_IMAGE":                          image,
		"ETCD_INITIAL_CLUSTER_STATE":          "existing",
		"ETCD_QUOTA_BACKEND_BYTES":            strconv.Itoa(8 << 30),
		"ETCD_SOCKET_REUSE_ADDRESS":           "true",
		"ETCD_TLS_MIN_VERSION":                tls.version,
	}
	if len(tls.ciphers) > 0 {
		values["ETCD_CIPHER_SUITES"] = strings.Join(tls.ciphers, ",")
	}
	for _, m := range all {
		values[memberEnv(m, "ETCD_NAME")] = m.name
		values[memberEnv(m, "ETCD_URL_HOST")] = host(m.address)
		values[memberEnv(m, "IP")] = host(m.address)
	}
	var env []corev1.EnvVar
	for _, name := range slices.Sorted(maps.Keys(values)) {
		env = append(env, corev1.EnvVar{Name: name, Value: values[name]})
	}
	return env
}

// memberEnv returns the name of a variable of one node. On that node, NODE_ENVVAR_NAME is replaced by the same text.
func memberEnv(m member, name string) string {
	return fmt.Sprintf("NODE_%s_%s", strings.NewReplacer("-", "_", ".", "_").Replace(m.name), name)
}

// timeouts returns heartbeat interval and election timeout in milliseconds. Some clouds have slower networks.
func timeouts(infrastructure *configv1.Infrastructure) (heartbeat, election string) {
	if platform := infrastructure.Status.PlatformStatus; platform != nil {
		vpc := platform.IBMCloud != nil && platform.IBMCloud.ProviderType == configv1.IBMCloudProviderTypeVPC
		if platform.Azure != nil || vpc {
			return "500", "2500"
		}
	}
	return "100", "1000"
}

func shellExports(env []corev1.EnvVar) string {
	var text strings.Builder
	for _, v := range env {
		fmt.Fprintf(&text, "export %s=%q\n", v.Name, v.Value)
	}
	return text.String()
}
