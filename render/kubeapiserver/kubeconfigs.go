// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/podtemplate"
)

const localURL = "https://localhost:6443"

// podKubeconfigs returns the kubeconfigs of the pod's containers and the node's administrator, which name files. The
// sidecars use the certificate of the node's administrator instead of a token (see the package's documentation), and
// the server name whose certificate is revisioned with them.
func podKubeconfigs() ([]*corev1.ConfigMap, error) {
	file := func(user, secret, serverName string) podtemplate.Kubeconfig {
		return podtemplate.Kubeconfig{
			Cluster: "loopback", User: user, Server: localURL, ServerName: serverName,
			CA:   revisioned("configmaps", "kube-apiserver-server-ca", bundleKey),
			Cert: unrevisioned("secrets", secret, corev1.TLSCertKey), Key: unrevisioned("secrets", secret, corev1.TLSPrivateKeyKey),
		}
	}
	var configMaps []*corev1.ConfigMap
	for _, k := range []struct {
		name       string
		kubeconfig podtemplate.Kubeconfig
	}{
		{"kube-apiserver-cert-syncer-kubeconfig", file("kube-apiserver-cert-syncer", nodeAdminCertificate, recoveryHost)},
		{"check-endpoints-kubeconfig", file("check-endpoints", checkEndpointsCertificate, "")},
		{"control-plane-node-kubeconfig", file("control-plane-node", nodeAdminCertificate, "")},
	} {
		configMap, err := k.kubeconfig.ConfigMap(Namespace, k.name)
		if err != nil {
			return nil, err
		}
		configMaps = append(configMaps, configMap)
	}
	return configMaps, nil
}

// kubeconfigs returns kubeconfigs with an embedded certificate, one for each address of the API server.
func kubeconfigs(infrastructure *configv1.Infrastructure, user string, certificate *corev1.Secret, serverCA string, keys ...string) (map[string][]byte, error) {
	data := map[string][]byte{}
	for _, key := range keys {
		cluster := clientcmdapi.Cluster{CertificateAuthorityData: []byte(serverCA)}
		var name string
		switch key {
		case LocalhostKubeconfig:
			name, cluster.Server = "localhost", localURL
		case RecoveryKubeconfig:
			name, cluster.Server, cluster.TLSServerName = recoveryHost, localURL, recoveryHost
		case InternalKubeconfig:
			name, cluster.Server = "lb-int", infrastructure.Status.APIServerInternalURL
		case ExternalKubeconfig:
			name, cluster.Server = "lb-ext", infrastructure.Status.APIServerURL
		}
		text, err := yaml.Marshal(clientcmdapi.Config{
			APIVersion: "v1", Kind: "Config", CurrentContext: user,
			Clusters: []clientcmdapi.NamedCluster{{Name: name, Cluster: cluster}},
			Contexts: []clientcmdapi.NamedContext{{Name: user, Context: clientcmdapi.Context{Cluster: name, AuthInfo: user}}},
			AuthInfos: []clientcmdapi.NamedAuthInfo{{Name: user, AuthInfo: clientcmdapi.AuthInfo{
				ClientCertificateData: certificate.Data[corev1.TLSCertKey], ClientKeyData: certificate.Data[corev1.TLSPrivateKeyKey],
			}}},
		})
		if err != nil {
			return nil, fmt.Errorf("write %s of %s: %w", key, user, err)
		}
		data[key] = text
	}
	return data, nil
}

func kubeconfigSecret(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{"openshift.io/owning-component": component}},
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}
}
