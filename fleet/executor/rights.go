// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/feedback"
)

const (
	// Name is the name of the executor, and of its roles.
	Name = "sno-fleet-executor"
	// AddOn is the value of the label of the ManifestWork with the rights, by which the add-on framework leaves it alone.
	AddOn = fleet.AddOn + "-rights"
	// WorkName is the name of that ManifestWork, in the namespace of each cluster.
	WorkName = "addon-" + AddOn
)

var (
	// ErrWaiting is returned as long as the work agent has not reported about a ManifestWork as it is now.
	ErrWaiting = errors.New("waiting for the work agent of the cluster")
	// ErrNotApplied is returned for a ManifestWork that the work agent could not apply.
	ErrNotApplied = errors.New("the work agent could not apply a manifest")

	errObject = errors.New("unexpected object")
)

// Executor is what ManifestWorks name in spec.executor.
func Executor() *workv1.ManifestWorkExecutor {
	return &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type:           workv1.ExecutorSubjectTypeServiceAccount,
		ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: fleet.Namespace, Name: Name},
	}}
}

// Work returns the ManifestWork with the rights to apply the manifests of a cluster. It has no executor: the work agent
// applies it with its own rights. It goes with the add-on.
func Work(addon *addonv1alpha1.ManagedClusterAddOn, manifests []runtime.Object) (*workv1.ManifestWork, error) {
	objects, err := Rights(manifests)
	if err != nil {
		return nil, err
	}
	return newWork(addon, WorkName, objects)
}

// newWork returns a ManifestWork that the add-on framework leaves alone and that goes with the add-on.
func newWork(addon *addonv1alpha1.ManagedClusterAddOn, name string, objects []runtime.Object) (*workv1.ManifestWork, error) {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: addon.Namespace, Name: name, Labels: map[string]string{addonv1alpha1.AddonLabelKey: AddOn},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(addon, schema.GroupVersionKind{
			Group: addonv1alpha1.GroupName, Version: addonv1alpha1.GroupVersion.Version, Kind: "ManagedClusterAddOn",
		})},
	}}
	for _, object := range objects {
		raw, err := runtime.Encode(unstructured.UnstructuredJSONScheme, object)
		if err != nil {
			return nil, err
		}
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return work, nil
}

// Applied returns nil for a ManifestWork that is applied as it is now, else an ErrWaiting, or an ErrNotApplied with the
// reasons.
func Applied(work *workv1.ManifestWork) error {
	applied, err := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkApplied), ErrWaiting
	switch {
	case applied == nil || applied.ObservedGeneration != work.Generation:
	case applied.Status == metav1.ConditionTrue:
		return nil
	default:
		err = fmt.Errorf("%w: %s", ErrNotApplied, strings.Join(feedback.Read(work).NotApplied, "; "))
	}
	return fmt.Errorf("ManifestWork %s/%s: %w", work.Namespace, work.Name, err)
}

// Rights returns what [Grant] returns for the executor, and the ClusterRole of what the work agent itself may do in
// addition.
func Rights(manifests []runtime.Object) ([]runtime.Object, error) {
	objects, err := Grant(Name, *Executor().Subject.ServiceAccount, manifests)
	return append(objects, agentRole()), err
}

// Grant returns the rights of an account to apply manifests: namespaces first, then a ClusterRole, a Role for each
// namespace, and their bindings, with this name.
func Grant(name string, account workv1.ManifestWorkSubjectServiceAccount, manifests []runtime.Object) ([]runtime.Object, error) {
	rules := map[string][]rbacv1.PolicyRule{} // by namespace
	var objects []runtime.Object
	for _, manifest := range manifests {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(manifest)
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{Object: content}
		its, err := rightsOf(object)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		rules[object.GetNamespace()] = append(rules[object.GetNamespace()], its...)
		if object.GroupVersionKind().GroupKind() == corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind() {
			objects = append(objects, object)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(rules)) {
		objects = append(objects, roleAndBinding(metav1.ObjectMeta{Namespace: namespace, Name: name}, account, merge(rules[namespace]))...)
	}
	return objects, nil
}

// rightsOf returns what the work agent's check of an executor asks for: create, get, update and patch by name, delete
// unless the object is only read, and for RBAC a dry run of its creation, which has no name yet.
func rightsOf(object *unstructured.Unstructured) ([]rbacv1.PolicyRule, error) {
	if object.GetKind() == "" {
		return nil, errObject
	}
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	verbs := []string{"create", "get", "patch", "update"}
	if _, kept := object.GetAnnotations()[addonv1alpha1.DeletionOrphanAnnotationKey]; !kept {
		verbs = append(verbs, "delete")
	}
	rule := func(resource string, names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{object.GroupVersionKind().Group}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
	}
	rules := []rbacv1.PolicyRule{rule(resource.Resource, []string{object.GetName()}, verbs...)}
	if resource.Group != rbacv1.GroupName {
		return rules, nil
	}
	rules = append(rules, rule(resource.Resource, nil, "create"))
	if !strings.HasSuffix(object.GetKind(), "Binding") {
		var role rbacv1.ClusterRole // a Role has the same rules
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role)
		return append(rules, role.Rules...), err
	}
	var binding rbacv1.ClusterRoleBinding
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding)
	return append(rules, rule(strings.ToLower(binding.RoleRef.Kind)+"s", []string{binding.RoleRef.Name}, "bind")), err
}

// merge joins the names of rules that differ in nothing else.
func merge(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	byRest := map[string]*rbacv1.PolicyRule{}
	for _, r := range rules {
		r.Verbs = slices.Sorted(slices.Values(r.Verbs))
		key := fmt.Sprint(r.APIGroups, r.Resources, r.NonResourceURLs, len(r.ResourceNames) > 0, r.Verbs)
		if byRest[key] == nil {
			byRest[key] = r.DeepCopy()
			continue
		}
		byRest[key].ResourceNames = append(byRest[key].ResourceNames, r.ResourceNames...)
	}
	var merged []rbacv1.PolicyRule
	for _, r := range byRest {
		slices.Sort(r.ResourceNames)
		r.ResourceNames = slices.Compact(r.ResourceNames)
		merged = append(merged, *r)
	}
	slices.SortFunc(merged, func(a, b rbacv1.PolicyRule) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return merged
}

func roleAndBinding(named metav1.ObjectMeta, account workv1.ManifestWorkSubjectServiceAccount, rules []rbacv1.PolicyRule) []runtime.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
	version := rbacv1.SchemeGroupVersion.String()
	if named.Namespace == "" {
		return []runtime.Object{
			&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRole"}, ObjectMeta: named, Rules: rules},
			&rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRoleBinding"}, ObjectMeta: named, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: named.Name}},
		}
	}
	return []runtime.Object{
		&rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "Role"}, ObjectMeta: named, Rules: rules},
		&rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "RoleBinding"}, ObjectMeta: named, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name}},
	}
}

// agentRole returns what the work agent may do in addition on a spoke: read what it reports, and apply our claims and
// policies. Its own role has the rest: workloads and RBAC.
func agentRole() *rbacv1.ClusterRole {
	_, read := feedback.Topology()
	for _, m := range feedback.Modules() {
		read = append(read, m.ManifestConfig())
	}
	var rules []rbacv1.PolicyRule
	for _, r := range read {
		id := r.ResourceIdentifier
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{id.Group}, Resources: []string{id.Resource}, Verbs: []string{"get", "list", "watch"}})
	}
	write := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	rules = append(rules,
		rbacv1.PolicyRule{APIGroups: []string{clusterv1alpha1.GroupName}, Resources: []string{"clusterclaims"}, Verbs: write},
		rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"}, Verbs: write,
			Resources: []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"}})
	return &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "sno-fleet-work", Labels: map[string]string{"open-cluster-management.io/aggregate-to-work": "true"},
		},
		Rules: merge(rules),
	}
}
