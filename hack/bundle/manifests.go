// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// ErrManifests is returned for manifests that a bundle cannot have.
var ErrManifests = errors.New("the bundle cannot have these manifests")

// Manifests are the objects of config/all, as kustomize renders them.
type Manifests struct {
	Namespace  *corev1.Namespace
	Account    string
	Deployment *appsv1.Deployment
	// Operator has the rules in the operator's namespace. Cluster has those of ClusterRoles, and of Roles in other
	// namespaces: OLM applies a Role of a bundle in the operator's namespace only.
	Operator, Cluster []rbacv1.PolicyRule
	// Others are the objects that OLM applies as they are, in the operator's namespace.
	Others []*unstructured.Unstructured
}

// others are kinds that a ClusterServiceVersion has no field for and that OLM applies from a bundle.
var others = []string{"ClusterRole", "NetworkPolicy", "Service"}

// Parse reads rendered manifests. Each kind must have a place in a bundle, so that none is lost but admission policies.
func Parse(rendered string) (*Manifests, error) {
	m := &Manifests{}
	bound := map[string]bool{} // "KIND NAMESPACE NAME" of the roles with a binding
	var roles []*unstructured.Unstructured
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			return nil, fmt.Errorf("reading what was rendered: %w", err)
		}
		var err error
		switch kind := u.GetKind(); kind {
		case "Namespace":
			m.Namespace, err = typed[corev1.Namespace](u)
		case "ServiceAccount":
			if m.Account != "" {
				return nil, fmt.Errorf("%w: two service accounts, %s and %s", ErrManifests, m.Account, u.GetName())
			}
			m.Account = u.GetName()
		case "Deployment":
			if m.Deployment != nil {
				return nil, fmt.Errorf("%w: two Deployments, %s and %s", ErrManifests, m.Deployment.Name, u.GetName())
			}
			m.Deployment, err = typed[appsv1.Deployment](u)
		case "Role", "ClusterRole":
			roles = append(roles, u)
		case "RoleBinding", "ClusterRoleBinding":
			var b *rbacv1.ClusterRoleBinding // a RoleBinding has the same fields
			if b, err = typed[rbacv1.ClusterRoleBinding](u); err == nil {
				bound[b.RoleRef.Kind+" "+u.GetNamespace()+" "+b.RoleRef.Name] = true
			}
		case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
			// OLM applies none from a bundle.
		default:
			if !slices.Contains(others, kind) {
				return nil, fmt.Errorf("%w: %s %s", ErrManifests, kind, u.GetName())
			}
			m.Others = append(m.Others, u)
		}
		if err != nil {
			return nil, err
		}
	}
	if m.Namespace == nil || m.Account == "" || m.Deployment == nil {
		return nil, fmt.Errorf("%w: a Namespace, a ServiceAccount and a Deployment must be there", ErrManifests)
	}
	for _, u := range roles {
		r, err := typed[rbacv1.ClusterRole](u)
		switch {
		case err != nil:
			return nil, err
		case !bound[u.GetKind()+" "+u.GetNamespace()+" "+u.GetName()]:
			m.Others = append(m.Others, u) // for another account
		case u.GetNamespace() == m.Namespace.Name:
			m.Operator = merge(m.Operator, r.Rules)
		default:
			m.Cluster = merge(m.Cluster, r.Rules)
		}
	}
	return m, nil
}

// merge appends the rules that are not there yet.
func merge(rules, more []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for _, rule := range more {
		if !slices.ContainsFunc(rules, func(has rbacv1.PolicyRule) bool { return reflect.DeepEqual(has, rule) }) {
			rules = append(rules, rule)
		}
	}
	return rules
}

// typed decodes an object. A field that this build does not have is an error: the bundle would lose it.
func typed[T any](u *unstructured.Unstructured) (*T, error) {
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, out, true); err != nil {
		return nil, fmt.Errorf("decoding %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return out, nil
}

// clean encodes a value as YAML, without the null times and empty values that typed objects have.
func clean(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var content any
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, err
	}
	prune(content)
	return yaml.Marshal(content)
}

func prune(value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			prune(field)
			if m, is := field.(map[string]any); field == nil || is && len(m) == 0 && slices.Contains(emptyFields, name) {
				delete(v, name)
			}
		}
	case []any:
		for _, item := range v {
			prune(item)
		}
	}
}

// emptyFields are fields whose empty values mean nothing.
var emptyFields = []string{"metadata", "status", "resources", "strategy", "cleanup", "apiservicedefinitions", "customresourcedefinitions"}
