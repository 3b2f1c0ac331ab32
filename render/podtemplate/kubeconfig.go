// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/inputs"
)

// ErrNoServer is returned if the address of the API server is not known.
var ErrNoServer = errors.New("the address of the API server is not known")

// Server returns the API server's URL. In profile kubernetes it is the node's own, because nothing resolves the
// internal load balancer's name (R-AIO-8).
func Server(infrastructure *configv1.Infrastructure, profile inputs.Profile) (string, error) {
	if profile == inputs.Kubernetes {
		return "https://localhost:6443", nil
	}
	if infrastructure.Status.APIServerInternalURL == "" {
		return "", fmt.Errorf("infrastructure cluster: status.apiServerInternalURI is empty: %w; set it", ErrNoServer)
	}
	return infrastructure.Status.APIServerInternalURL, nil
}

// Kubeconfig describes how a client reaches the API server. Files are paths in a component's container.
type Kubeconfig struct {
	Cluster, User string
	Server        string
	// ServerName is the expected name in the server's certificate, if it is not the host of Server.
	ServerName string
	CA         string
	Cert, Key  string
	// What is embedded instead.
	CAData, CertData, KeyData []byte
}

// Text returns the kubeconfig as YAML.
func (k Kubeconfig) Text() ([]byte, error) {
	return yaml.Marshal(clientcmdapi.Config{
		APIVersion: "v1",
		Kind:       "Config",
		Clusters: []clientcmdapi.NamedCluster{{Name: k.Cluster, Cluster: clientcmdapi.Cluster{
			Server: k.Server, TLSServerName: k.ServerName, CertificateAuthority: k.CA, CertificateAuthorityData: k.CAData,
		}}},
		AuthInfos: []clientcmdapi.NamedAuthInfo{{Name: k.User, AuthInfo: clientcmdapi.AuthInfo{
			ClientCertificate: k.Cert, ClientKey: k.Key, ClientCertificateData: k.CertData, ClientKeyData: k.KeyData,
		}}},
		Contexts:       []clientcmdapi.NamedContext{{Name: k.User, Context: clientcmdapi.Context{Cluster: k.Cluster, AuthInfo: k.User}}},
		CurrentContext: k.User,
	})
}

// ConfigMap returns the ConfigMap that holds the kubeconfig.
func (k Kubeconfig) ConfigMap(namespace, name string) (*corev1.ConfigMap, error) {
	text, err := k.Text()
	if err != nil {
		return nil, fmt.Errorf("write kubeconfig %s/%s: %w", namespace, name, err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string]string{"kubeconfig": string(text)},
	}, nil
}

// RecoveryServiceAccount is the sidecars' ServiceAccount, RecoveryCertificate the Secret of their certificate.
const (
	RecoveryServiceAccount = "localhost-recovery-client"
	RecoveryCertificate    = "localhost-recovery-client-cert-key"
)

// LoopbackKubeconfig returns the kubeconfig of the sidecars for their node's API server. The stock operators use a
// token (U-REN-12), whose uid only a running API server assigns, so the sidecars have a certificate for the same user.
func LoopbackKubeconfig(user string) Kubeconfig {
	const certificate = CertDir + "/secrets/" + RecoveryCertificate
	return Kubeconfig{
		Cluster: "loopback", User: user, Server: "https://localhost:6443", ServerName: "localhost-recovery",
		CA:   ResourceDir + "/configmaps/serviceaccount-ca/ca-bundle.crt",
		Cert: certificate + "/tls.crt", Key: certificate + "/tls.key",
	}
}

// RecoveryUser returns the identity of the recovery client of a component.
func RecoveryUser(namespace string) *user.DefaultInfo {
	return &user.DefaultInfo{
		Name:   serviceaccount.MakeUsername(namespace, RecoveryServiceAccount),
		Groups: serviceaccount.MakeGroupNames(namespace),
	}
}
