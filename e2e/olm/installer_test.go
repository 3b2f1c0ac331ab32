// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/e2e/framework"
)

// conditionCRD is the file with the CustomResourceDefinition of OperatorConditions, relative to the root of the
// repository.
const conditionCRD = "cli/operatorcondition/testdata/operators.coreos.com_operatorconditions.yaml"

// nameVariable is the environment variable that OLM adds to the containers, with the name of the OperatorCondition.
const nameVariable = "OPERATOR_CONDITION_NAME"

// errBundle is returned for a bundle that cannot be installed.
var errBundle = errors.New("invalid bundle")

// templateAnnotation has the namespace that the web console makes for the operator.
const templateAnnotation = "operatorframework.io/suggested-namespace-template"

// installedVersion is what OLM uses of a ClusterServiceVersion.
type installedVersion struct {
	Metadata struct {
		Name        string
		Annotations map[string]string
	}
	Spec struct {
		NativeAPIs []metav1.GroupVersionKind
		Install    struct {
			Spec struct {
				Permissions, ClusterPermissions []permission
				Deployments                     []installedDeployment
			}
		}
	}
	// Others are the other manifests of the bundle.
	Others []*unstructured.Unstructured `json:"-"`
}

// permission has rules for a service account.
type permission struct {
	ServiceAccountName string
	Rules              []rbacv1.PolicyRule
}

// installedDeployment is a Deployment with its labels.
type installedDeployment struct {
	Name  string
	Label map[string]string
	Spec  appsv1.DeploymentSpec
}

// writeBundle writes the bundle of a checkout into a folder.
func writeBundle(ctx context.Context, root, folder string) error {
	command := exec.CommandContext(ctx, "go", "run", "./cmd/bundle", "-out", folder,
		"-image", "registry.invalid/sno/kubectl-sno@sha256:"+strings.Repeat("0", 64))
	command.Dir = filepath.Join(root, "hack")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("write the bundle: %w\n%s", err, out)
	}
	return nil
}

// readBundle reads a written bundle.
func readBundle(folder string) (*installedVersion, error) {
	files, err := filepath.Glob(filepath.Join(folder, "bundle", "manifests", "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list the manifests of the bundle: %w", err)
	}
	var version *installedVersion
	var others []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the bundle: %w", err)
		}
		if strings.HasSuffix(file, ".clusterserviceversion.yaml") {
			version = &installedVersion{}
			if err := yaml.Unmarshal(text, version); err != nil {
				return nil, fmt.Errorf("read %s: %w", filepath.Base(file), err)
			}
			continue
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
			return nil, fmt.Errorf("read %s: %w", filepath.Base(file), err)
		}
		others = append(others, object)
	}
	if version == nil || len(version.Spec.Install.Spec.Deployments) != 1 {
		return nil, fmt.Errorf("%w: it must have one ClusterServiceVersion with one Deployment", errBundle)
	}
	version.Others = others
	return version, nil
}

// Namespace returns the namespace that the bundle suggests.
func (v *installedVersion) Namespace() (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{}
	if err := json.Unmarshal([]byte(v.Metadata.Annotations[templateAnnotation]), namespace); err != nil {
		return nil, fmt.Errorf("read the annotation %s: %w", templateAnnotation, err)
	}
	return namespace, nil
}

// Install makes what OLM makes for a bundle, with the same rights in the operator's namespace. OLM also binds the rules
// of permissions in all namespaces if its OperatorGroup has no target namespaces; the operator does not need that.
func (v *installedVersion) Install(ctx context.Context, kube client.Client) error {
	for _, api := range v.Spec.NativeAPIs {
		if _, err := kube.RESTMapper().RESTMapping(schema.GroupKind{Group: api.Group, Kind: api.Kind}, api.Version); err != nil {
			return fmt.Errorf("requirement %s: %w", api.String(), err)
		}
	}
	namespace, err := v.Namespace()
	if err != nil {
		return err
	}
	objects := []client.Object{namespace}
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace.Name, Name: name} }
	install := v.Spec.Install.Spec
	accounts := map[string]bool{}
	for _, p := range append(append([]permission{}, install.Permissions...), install.ClusterPermissions...) {
		if !accounts[p.ServiceAccountName] {
			objects = append(objects, &corev1.ServiceAccount{ObjectMeta: at(p.ServiceAccountName)})
		}
		accounts[p.ServiceAccountName] = true
	}
	role := func(name string, rules []rbacv1.PolicyRule, account string) {
		objects = append(objects, &rbacv1.Role{ObjectMeta: at(name), Rules: rules}, &rbacv1.RoleBinding{
			ObjectMeta: at(name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: subject(namespace.Name, account),
		})
	}
	for i, p := range install.Permissions {
		role(fmt.Sprintf("%s-%d", v.Metadata.Name, i), p.Rules, p.ServiceAccountName)
	}
	for i, p := range install.ClusterPermissions {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", v.Metadata.Name, i)}
		objects = append(objects, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: p.Rules}, &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: subject(namespace.Name, p.ServiceAccountName),
		})
	}
	condition := v.Condition(namespace.Name)
	objects = append(objects, condition)
	for account := range accounts {
		role(condition.GetName(), []rbacv1.PolicyRule{{
			APIGroups: []string{"operators.coreos.com"}, Resources: []string{"operatorconditions"}, ResourceNames: []string{condition.GetName()},
			Verbs: []string{"get", "update", "patch"},
		}}, account)
	}
	deployment := &appsv1.Deployment{ObjectMeta: at(install.Deployments[0].Name), Spec: *install.Deployments[0].Spec.DeepCopy()}
	deployment.Labels = install.Deployments[0].Label
	for i := range deployment.Spec.Template.Spec.Containers {
		container := &deployment.Spec.Template.Spec.Containers[i]
		container.Env = append(container.Env, corev1.EnvVar{Name: nameVariable, Value: condition.GetName()})
	}
	objects = append(objects, deployment)
	for _, object := range objects {
		if err := kube.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make %T %s: %w", object, object.GetName(), err)
		}
	}
	for _, object := range v.Others {
		object = object.DeepCopy()
		if mapping, err := kube.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind()); err == nil && mapping.Scope.Name() == "namespace" {
			object.SetNamespace(namespace.Name)
		}
		if err := framework.Apply(ctx, kube, object); err != nil {
			return err
		}
	}
	return nil
}

func subject(namespace, account string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}
}

// Condition returns the OperatorCondition of the version, without conditions.
func (v *installedVersion) Condition(namespace string) *unstructured.Unstructured {
	condition := &unstructured.Unstructured{}
	condition.SetGroupVersionKind(schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v2", Kind: "OperatorCondition"})
	condition.SetNamespace(namespace)
	condition.SetName(v.Metadata.Name)
	return condition
}
