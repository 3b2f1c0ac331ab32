// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"fmt"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

const (
	adminUser    = "system:admin"
	mastersGroup = "system:masters"
	// tokenLifetime is that of tokens in service accounts' kubeconfigs, in seconds. It exceeds every test and use of `make
	// run`.
	tokenLifetime int64 = 24 * 60 * 60
)

// RESTConfig returns a new configuration with all permissions and without rate limits.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// KubeconfigPath returns the path of a kubeconfig file with all permissions.
func (c *Cluster) KubeconfigPath() string { return filepath.Join(c.dir, "kubeconfig") }

// ConfigForUser returns a configuration that authenticates as user in groups by a client certificate. RBAC decides the
// permissions.
func (c *Cluster) ConfigForUser(user string, groups ...string) (*rest.Config, error) {
	client, err := c.credentials.ca.issue(cert.Config{CommonName: user, Organization: groups})
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: c.url,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: c.credentials.caPEM, ServerName: c.credentials.serverName, CertData: client.cert, KeyData: client.key,
		},
		// The server has its own priority and fairness; a client-side limit would distort measurements.
		QPS: -1,
	}, nil
}

// ConfigForAdministrator is ConfigForUser with all permissions. The audit log names the user.
func (c *Cluster) ConfigForAdministrator(user string) (*rest.Config, error) {
	return c.ConfigForUser(user, mastersGroup)
}

// KubeconfigForAdministrator writes a kubeconfig file for ConfigForAdministrator and returns its path.
func (c *Cluster) KubeconfigForAdministrator(user string) (string, error) {
	config, err := c.ConfigForAdministrator(user)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, fmt.Sprintf("administrator-%s.kubeconfig", user))
	return path, WriteKubeconfig(path, config, metav1.NamespaceDefault)
}

// KubeconfigForServiceAccount writes a kubeconfig file with a new token of a service account that exists, and returns
// its path. Controllers run with it, so that they have the permissions of their own RBAC only.
func (c *Cluster) KubeconfigForServiceAccount(ctx context.Context, namespace, name string) (string, error) {
	lifetime := tokenLifetime
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lifetime}}
	token, err := c.clientset.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request a token for service account %s/%s: %w", namespace, name, err)
	}
	path := filepath.Join(c.dir, fmt.Sprintf("serviceaccount-%s-%s.kubeconfig", namespace, name))
	config := &rest.Config{
		Host: c.url, BearerToken: token.Status.Token, TLSClientConfig: rest.TLSClientConfig{CAData: c.credentials.caPEM, ServerName: c.credentials.serverName},
	}
	return path, WriteKubeconfig(path, config, namespace)
}

func (c *Cluster) componentKubeconfig(component, user string, groups ...string) error {
	config, err := c.ConfigForUser(user, groups...)
	if err != nil {
		return err
	}
	return WriteKubeconfig(c.componentKubeconfigPath(component), config, metav1.NamespaceDefault)
}

func (c *Cluster) componentKubeconfigPath(component string) string {
	return filepath.Join(c.dir, pkiDir, component+".kubeconfig")
}

// WriteKubeconfig writes a kubeconfig file for a configuration with PEM data or a token.
func WriteKubeconfig(path string, config *rest.Config, namespace string) error {
	const name = "sno"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
	}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	file.CurrentContext = name
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	return nil
}
