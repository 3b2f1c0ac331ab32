// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"encoding/json"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/executor"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/modules"
)

// The work agent's check of an executor (pkg/work/spoke/auth/basic of ocm v1.2.1) passes for each manifest of a spoke,
// and for no other.
func TestExecutor(t *testing.T) {
	server, objects := shared.Server(t), rendered(t)
	user := apiserver.AccountUser(fleet.Namespace, executor.Name)
	admin, its := server.Admin(t), server.Client(t, user)
	var manifests []runtime.Object
	for _, o := range objects {
		manifests = append(manifests, o)
		if o.GetNamespace() != "" {
			server.Put(t, modules.Object("v1", "Namespace", "", o.GetNamespace()).Unstructured())
		}
	}
	rights, err := executor.Rights(manifests)
	apiserver.NoError(t, err)
	for _, r := range rights {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
		apiserver.NoError(t, err)
		server.Put(t, &unstructured.Unstructured{Object: content})
	}
	allowed := func(o *unstructured.Unstructured) bool {
		t.Helper()
		resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		verbs := []string{"create", "update", "patch", "get"}
		if _, kept := o.GetAnnotations()[addonv1alpha1.DeletionOrphanAnnotationKey]; !kept {
			verbs = append(verbs, "delete")
		}
		for _, verb := range verbs {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Namespace: o.GetNamespace(), Name: o.GetName(), Verb: verb,
				}}}
			apiserver.NoError(t, admin.Create(t.Context(), review))
			if !review.Status.Allowed {
				return false
			}
		}
		if resource.Group != rbacv1.GroupName {
			return true
		}
		err := its.Create(t.Context(), o.DeepCopy(), client.DryRunAll)
		if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsAlreadyExists(err) {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		return !apierrors.IsForbidden(err)
	}
	var role *unstructured.Unstructured
	for _, o := range objects {
		apiserver.Eventually(t, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()+" is allowed", func() error {
			if !allowed(o) { // the authorizer has a cache
				return apierrors.NewForbidden(rbacv1.Resource("roles"), o.GetName(), nil)
			}
			return nil
		})
		if o.GetKind() == "ClusterRole" {
			role = o
		}
	}
	for name, text := range map[string]string{
		"all rights": `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"sno-ingress-controller"},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"eve"}]}`,
		"a role with more": `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"` + role.GetName() + `"},
			"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`,
		"another Deployment":      `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"other","namespace":"sno-system"}}`,
		"ours, somewhere else":    `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"sno-ingress-controller","namespace":"openshift-ingress"}}`,
		"another ingress":         `{"apiVersion":"operator.openshift.io/v1","kind":"IngressController","metadata":{"name":"other","namespace":"openshift-ingress-operator"}}`,
		"what is read, to delete": `{"apiVersion":"operator.openshift.io/v1","kind":"IngressController","metadata":{"name":"default","namespace":"openshift-ingress-operator"}}`,
	} {
		o := &unstructured.Unstructured{}
		apiserver.NoError(t, json.Unmarshal([]byte(text), &o.Object))
		if allowed(o) {
			t.Errorf("%s is allowed", name)
		}
	}
}
