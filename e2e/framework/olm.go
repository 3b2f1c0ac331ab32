// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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

// permissions are those of a ClusterServiceVersion.
type permissions []struct {
	ServiceAccountName string              `json:"serviceAccountName"`
	Rules              []rbacv1.PolicyRule `json:"rules"`
}

// RunOLMOperator installs the rights of the operator as OLM does, and starts or restarts it with its service account.
// The operator itself is a process outside of the cluster.
func (s *ScenarioCluster) RunOLMOperator(ctx context.Context, args ...string) (*embedded.Component, error) {
	if err := installOLMRights(ctx, s.Cluster); err != nil {
		return nil, err
	}
	if running := s.Cluster.Program(programs.OLMExample.Name); running != nil {
		if err := running.Terminate(ctx); err != nil {
			return nil, err
		}
	}
	binary, err := programs.Build(ctx, programs.OLMExample, s.progress)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := s.Cluster.KubeconfigForServiceAccount(ctx, OLMNamespace, olmAccount)
	if err != nil {
		return nil, err
	}
	return s.Cluster.Run(ctx, programs.OLMExample.Name, binary, append([]string{"--kubeconfig", kubeconfig, "--namespace", OLMNamespace}, args...)...)
}

func installOLMRights(ctx context.Context, c *embedded.Cluster) error {
	root, err := programs.Root(ctx)
	if err != nil {
		return err
	}
	file := filepath.Join(root, filepath.FromSlash(programs.OLMExample.Module), "bundle", "manifests", "olm-operator.clusterserviceversion.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the ClusterServiceVersion: %w", err)
	}
	var version struct {
		Spec struct {
			Install struct {
				Spec struct {
					ClusterPermissions permissions `json:"clusterPermissions"`
					Permissions        permissions `json:"permissions"`
				} `json:"spec"`
			} `json:"install"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &version); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	if err := c.EnsureNamespace(ctx, OLMNamespace); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: OLMNamespace, Name: olmAccount}
	objects := []client.Object{&corev1.ServiceAccount{ObjectMeta: meta}}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: OLMNamespace, Name: olmAccount}}
	for _, p := range version.Spec.Install.Spec.ClusterPermissions {
		wide := metav1.ObjectMeta{Name: strings.Join([]string{OLMNamespace, p.ServiceAccountName}, "-")}
		objects = append(objects, &rbacv1.ClusterRole{ObjectMeta: wide, Rules: p.Rules}, &rbacv1.ClusterRoleBinding{
			ObjectMeta: wide, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: wide.Name},
		})
	}
	for _, p := range version.Spec.Install.Spec.Permissions {
		objects = append(objects, &rbacv1.Role{ObjectMeta: meta, Rules: p.Rules}, &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		})
	}
	for _, object := range objects {
		if err := c.Client().Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("install the rights of the OLM operator: %T: %w", object, err)
		}
	}
	return nil
}
