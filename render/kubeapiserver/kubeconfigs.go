// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/podtemplate"
)

const localURL = "https://localhost:6443"

// podKubeconfigs returns the kubeconfigs of the pod's containers and the node's administrator, which name files. The
// sidecars use the certificate of the node's administrator instead of a token (see the package's documentation), and
// the server name whose certificate is revisioned with them.
func podKubeconfigs() ([]runtime.Object, error) {
	var configMaps []runtime.Object
	for _, k := range []struct{ user, secret, serverName string }{
		{"kube-apiserver-cert-syncer", nodeAdminCertificate, recoveryHost},
		{"check-endpoints", checkEndpointsCertificate, ""},
		{"control-plane-node", nodeAdminCertificate, ""},
	} {
		configMap, err := podtemplate.Kubeconfig{
			Cluster: "loopback", User: k.user, Server: localURL, ServerName: k.serverName,
			CA:   revisioned("configmaps", "kube-apiserver-server-ca", bundleKey),
			Cert: unrevisioned("secrets", k.secret, corev1.TLSCertKey), Key: unrevisioned("secrets", k.secret, corev1.TLSPrivateKeyKey),
		}.ConfigMap(Namespace, k.user+"-kubeconfig")
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
		k := podtemplate.Kubeconfig{
			User: user, CAData: []byte(serverCA), CertData: certificate.Data[corev1.TLSCertKey], KeyData: certificate.Data[corev1.TLSPrivateKeyKey],
		}
		switch key {
		case LocalhostKubeconfig:
			k.Cluster, k.Server = "localhost", localURL
		case RecoveryKubeconfig:
			k.Cluster, k.Server, k.ServerName = recoveryHost, localURL, recoveryHost
		case InternalKubeconfig:
			k.Cluster, k.Server = "lb-int", infrastructure.Status.APIServerInternalURL
		case ExternalKubeconfig:
			k.Cluster, k.Server = "lb-ext", infrastructure.Status.APIServerURL
		}
		text, err := k.Text()
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
