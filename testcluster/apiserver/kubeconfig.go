// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig writes a kubeconfig for a user with a client certificate, and returns its path.
func (s *Server) Kubeconfig(t testing.TB, user string, groups ...string) string {
	t.Helper()
	config := s.Config(t, user, groups...)
	return s.kubeconfig(t, config.Host, &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData})
}

// AccountKubeconfig is Kubeconfig for a service account with a token. address replaces the API server's unless empty.
func (s *Server) AccountKubeconfig(t testing.TB, namespace, account, address string) string {
	t.Helper()
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	request := &authenticationv1.TokenRequest{}
	NoError(t, s.Admin(t).SubResource("token").Create(t.Context(), owner, request))
	return s.kubeconfig(t, address, &clientcmdapi.AuthInfo{Token: request.Status.Token})
}

// AccountUser returns the user name of a service account.
func AccountUser(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}

func (s *Server) kubeconfig(t testing.TB, address string, user *clientcmdapi.AuthInfo) string {
	t.Helper()
	server := s.Config(t, "kubeconfig-template")
	if address == "" {
		address = server.Host
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["test"] = &clientcmdapi.Cluster{Server: address, CertificateAuthorityData: server.CAData}
	kubeconfig.AuthInfos["test"] = user
	kubeconfig.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	kubeconfig.CurrentContext = "test"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	NoError(t, clientcmd.WriteToFile(*kubeconfig, file))
	return file
}
