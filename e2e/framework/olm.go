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

// ServiceVersion is what OLM uses of a ClusterServiceVersion.
type ServiceVersion struct {
	Metadata struct {
		Name        string
		Annotations map[string]string
	}
	Spec struct {
		NativeAPIs []metav1.GroupVersionKind
		Install    struct {
			Spec struct {
				Permissions, ClusterPermissions []permission
				Deployments                     []InstalledDeployment
			}
		}
	}
}

// permission has rules for a service account.
type permission struct {
	ServiceAccountName string
	Rules              []rbacv1.PolicyRule
}

// InstalledDeployment is a Deployment with its labels.
type InstalledDeployment struct {
	Name  string
	Label map[string]string
	Spec  appsv1.DeploymentSpec
}

// ReadServiceVersion reads a ClusterServiceVersion.
func ReadServiceVersion(file string) (*ServiceVersion, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the ClusterServiceVersion: %w", err)
	}
	v := &ServiceVersion{}
	if err := yaml.Unmarshal(text, v); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return v, nil
}

// Rights returns the service accounts of the version and what gives them its permissions. OLM also binds the rules of
// permissions in all namespaces if its OperatorGroup has no target namespaces; the operators here do not need that.
func (v *ServiceVersion) Rights(namespace string) []client.Object {
	install, objects := v.Spec.Install.Spec, []client.Object{}
	for i, p := range install.Permissions {
		objects = append(objects, RoleFor(namespace, fmt.Sprintf("%s-%d", v.Metadata.Name, i), p.ServiceAccountName, p.Rules)...)
	}
	for i, p := range install.ClusterPermissions {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", v.Metadata.Name, i)}
		objects = append(objects, account(namespace, p.ServiceAccountName), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: p.Rules}, &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}, Subjects: subjects(namespace, p.ServiceAccountName),
		})
	}
	return objects
}

// RoleFor returns a service account with a role in its namespace.
func RoleFor(namespace, name, accountName string, rules []rbacv1.PolicyRule) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	return []client.Object{account(namespace, accountName), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: subjects(namespace, accountName),
	}}
}

func account(namespace, name string) client.Object {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func subjects(namespace, account string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}
}

// Create creates objects that do not exist.
func Create(ctx context.Context, kube client.Client, objects ...client.Object) error {
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
	if err := installOLMRights(ctx, s.Cluster); err != nil {
		return nil, err
	}
	return s.run(ctx, programs.OLMExample, OLMNamespace, olmAccount, func(kubeconfig string) []string {
		return append([]string{"--kubeconfig", kubeconfig, "--namespace", OLMNamespace}, args...)
	})
}

func installOLMRights(ctx context.Context, c *embedded.Cluster) error {
	root, err := programs.Root(ctx)
	if err != nil {
		return err
	}
	folder := filepath.Join(root, filepath.FromSlash(programs.OLMExample.Module), "bundle", "manifests")
	version, err := ReadServiceVersion(filepath.Join(folder, "olm-operator.clusterserviceversion.yaml"))
	if err != nil {
		return err
	}
	if err := c.EnsureNamespace(ctx, OLMNamespace); err != nil {
		return err
	}
	return Create(ctx, c.Client(), version.Rights(OLMNamespace)...)
}
