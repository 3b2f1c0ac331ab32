// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
)

const (
	// OLMNamespace is the namespace of the operator that OLM installs.
	OLMNamespace = "example-olm-operator"
	// OLMOperand is its Deployment there.
	OLMOperand = "example-server"
	// OLMLease is its Lease there.
	OLMLease = "olm-operator"

	olmAccount = "olm-operator"
)

// serviceVersion is what OLM uses of a ClusterServiceVersion.
type serviceVersion struct {
	Metadata struct{ Name string }
	Spec     struct {
		Install struct {
			Spec struct {
				Permissions, ClusterPermissions []permission
				Deployments                     []struct {
					Name  string
					Label map[string]string
					Spec  appsv1.DeploymentSpec
				}
			}
		}
	}
}

// permission has rules for a service account.
type permission struct {
	ServiceAccountName string
	Rules              []rbacv1.PolicyRule
}

// rights returns the service accounts of the version and what gives them its permissions. OLM also binds the rules of
// permissions in all namespaces if its OperatorGroup has no target namespaces; the operator here does not need that.
func (v *serviceVersion) rights(namespace string) (objects []client.Object) {
	for i, p := range v.Spec.Install.Spec.Permissions {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d", v.Metadata.Name, i)}
		objects = append(objects, account(namespace, p.ServiceAccountName), &rbacv1.Role{ObjectMeta: meta, Rules: p.Rules}, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}, Subjects: subjects(namespace, p.ServiceAccountName),
		})
	}
	for i, p := range v.Spec.Install.Spec.ClusterPermissions {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", v.Metadata.Name, i)}
		objects = append(objects, account(namespace, p.ServiceAccountName), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: p.Rules}, &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}, Subjects: subjects(namespace, p.ServiceAccountName),
		})
	}
	return objects
}

func account(namespace, name string) client.Object {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func subjects(namespace, account string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}
}

// create creates objects that do not exist.
func create(ctx context.Context, kube client.Client, objects ...client.Object) error {
	for _, object := range objects {
		if err := kube.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// RunOLMOperator installs the rights of the operator as OLM does, and starts or restarts it with its service account.
// The operator itself is a process outside of the cluster.
func (s *ScenarioCluster) RunOLMOperator(ctx context.Context, args ...string) (*embedded.Component, error) {
	root, err := programs.Root(ctx)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(root, programs.OLMExample.Module, "bundle", "manifests", "olm-operator.clusterserviceversion.yaml")
	if _, err := InstallServiceVersion(ctx, s.Cluster, file, OLMNamespace); err != nil {
		return nil, err
	}
	return s.run(ctx, programs.OLMExample, OLMNamespace, olmAccount, func(kubeconfig string) []string {
		return append([]string{"--kubeconfig", kubeconfig, "--namespace", OLMNamespace}, args...)
	})
}

// InstallServiceVersion installs the rights of a ClusterServiceVersion as OLM does, and returns its Deployment.
func InstallServiceVersion(ctx context.Context, c *embedded.Cluster, file, namespace string) (*appsv1.Deployment, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the ClusterServiceVersion: %w", err)
	}
	version := &serviceVersion{}
	if err := yaml.Unmarshal(text, version); err != nil {
		return nil, fmt.Errorf("read the ClusterServiceVersion: %w", err)
	}
	if err := c.EnsureNamespace(ctx, namespace); err != nil {
		return nil, err
	}
	its := version.Spec.Install.Spec.Deployments[0]
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: its.Name, Labels: its.Label}, Spec: its.Spec},
		create(ctx, c.Client(), version.rights(namespace)...)
}
