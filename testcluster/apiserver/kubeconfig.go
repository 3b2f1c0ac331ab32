// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/testcluster/embedded"
)

// Kubeconfig writes a kubeconfig for a user with a client certificate, and returns its path.
func (s *Server) Kubeconfig(t testing.TB, user string, groups ...string) string {
	t.Helper()
	return kubeconfig(t, s.Config(t, user, groups...))
}

// AccountKubeconfig is Kubeconfig for a service account with a token. address replaces the API server's unless empty.
func (s *Server) AccountKubeconfig(t testing.TB, namespace, account, address string) string {
	t.Helper()
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	request := &authenticationv1.TokenRequest{}
	NoError(t, s.Admin(t).SubResource("token").Create(t.Context(), owner, request))
	config := rest.AnonymousClientConfig(s.cluster.RESTConfig())
	config.BearerToken = request.Status.Token
	if address != "" {
		config.Host = address
	}
	return kubeconfig(t, config)
}

// AccountUser returns the user name of a service account.
func AccountUser(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}

func kubeconfig(t testing.TB, config *rest.Config) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	NoError(t, embedded.WriteKubeconfig(file, config, metav1.NamespaceDefault))
	return file
}
