// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/testcluster/embedded"
)

const (
	// BootstrapNamespace is the namespace of BootstrapAccount.
	BootstrapNamespace = "openshift-machine-config-operator"
	// BootstrapAccount is the service account with which kubelets request their first certificates.
	BootstrapAccount = "node-bootstrapper"
)

// PrepareJoining creates what an installation has for nodes that join: the bootstrapper with its rights, and the CA of
// kubelets.
func PrepareJoining(ctx context.Context, c *embedded.Cluster) error {
	const authorityNamespace = "openshift-config-managed"
	for _, namespace := range []string{BootstrapNamespace, authorityNamespace} {
		if err := c.EnsureNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	return create(ctx, c.Client(), account(BootstrapNamespace, BootstrapAccount), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "system-bootstrap-node-bootstrapper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects:   subjects(BootstrapNamespace, BootstrapAccount),
	}, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: authorityNamespace, Name: "csr-controller-ca"},
		Data:       map[string]string{"ca-bundle.crt": string(c.RESTConfig().CAData)},
	})
}
