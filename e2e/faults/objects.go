// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/scenario"
)

// patchedObject is an object that a module patches on a single node.
type patchedObject struct {
	Object
	gvk    schema.GroupVersionKind
	module framework.Module
	// fields are in force on a single node. deleted objects do not exist there.
	fields  []fieldpath.Path
	deleted bool
	// optional objects may be missing where the patch is not in force.
	optional bool
}

var (
	ingressObject = patchedObject{
		Object: Object{"operator.openshift.io", "ingresscontrollers", scenario.OperatorNamespace, scenario.DefaultIngressController},
		gvk:    operatorv1.GroupVersion.WithKind("IngressController"), module: framework.Ingress,
		fields: []fieldpath.Path{field("spec", "nodePlacement", "nodeSelector"), field("spec", "nodePlacement", "tolerations"), field("spec", "replicas")},
	}
	downloadsObject = patchedObject{
		Object: Object{"apps", "deployments", scenario.ConsoleNamespace, "downloads"}, gvk: appsv1.SchemeGroupVersion.WithKind("Deployment"), module: framework.Console,
		fields: []fieldpath.Path{field("spec", "replicas"), field("spec", "strategy"), field("spec", "template", "spec", "nodeSelector")},
	}
	authenticationObject = patchedObject{
		Object: Object{"operator.openshift.io", "authentications", "", scenario.ClusterName},
		gvk:    operatorv1.GroupVersion.WithKind("Authentication"), module: framework.Auth,
		fields: []fieldpath.Path{field("spec", "unsupportedConfigOverrides", "useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer")},
	}
	guardObject = patchedObject{
		Object: Object{"apps", "deployments", scenario.EtcdNamespace, "etcd-quorum-guard"}, gvk: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		module: framework.EtcdGuard, deleted: true,
	}
	budgetObject = patchedObject{
		Object: Object{"policy", "poddisruptionbudgets", scenario.EtcdNamespace, "etcd-quorum-guard"},
		gvk:    policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), module: framework.EtcdGuard, deleted: true,
	}
	approverObject = patchedObject{
		Object: Object{"", "configmaps", framework.StockApproverNamespace, "machine-approver-config"}, gvk: corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		module: framework.Approver, fields: []fieldpath.Path{field("data", "config.yaml")}, optional: true,
	}
	versionObject = patchedObject{Object: ClusterVersion, gvk: configv1.GroupVersion.WithKind("ClusterVersion"), module: framework.Console, fields: []fieldpath.Path{
		overrideEntry("Deployment", "apps", scenario.ConsoleNamespace, "downloads"),
	}}
	guardVersionObject = patchedObject{Object: ClusterVersion, gvk: versionObject.gvk, module: framework.EtcdGuard, fields: []fieldpath.Path{
		overrideEntry("Deployment", "apps", scenario.EtcdNamespace, "etcd-quorum-guard"),
		overrideEntry("PodDisruptionBudget", "policy", scenario.EtcdNamespace, "etcd-quorum-guard"),
	}}
)

func patchedObjects() []patchedObject {
	return []patchedObject{
		ingressObject, downloadsObject, versionObject, authenticationObject, guardObject, budgetObject, guardVersionObject, approverObject,
	}
}

// optOutObjects are the objects whose annotation opts out of a module.
func optOutObjects() map[framework.Module]patchedObject {
	named := func(gvk schema.GroupVersionKind, namespace, name string) patchedObject {
		return patchedObject{Object: Object{Group: gvk.Group, Resource: strings.ToLower(gvk.Kind), Namespace: namespace, Name: name}, gvk: gvk}
	}
	return map[framework.Module]patchedObject{
		framework.Ingress: ingressObject, framework.Auth: authenticationObject,
		framework.Console:   named(operatorv1.GroupVersion.WithKind("Console"), "", scenario.ClusterName),
		framework.EtcdGuard: named(operatorv1.GroupVersion.WithKind("Etcd"), "", scenario.ClusterName),
		framework.Approver:  named(appsv1.SchemeGroupVersion.WithKind("Deployment"), framework.StockApproverNamespace, framework.StockApprover),
	}
}

func claims() []Claim {
	return []Claim{{downloadsObject.Object, "Deployment"}, {guardObject.Object, "Deployment"}, {budgetObject.Object, "PodDisruptionBudget"}}
}

func field(names ...string) fieldpath.Path {
	var path fieldpath.Path
	for _, name := range names {
		path = append(path, fieldpath.FieldNameElement(name))
	}
	return path
}

func overrideEntry(kind, group, namespace, name string) fieldpath.Path {
	return fieldpath.MakePathOrDie("spec", "overrides", fieldpath.KeyByFields("group", group, "kind", kind, "name", name, "namespace", namespace))
}

// empty returns the object with its name only.
func (o patchedObject) empty() *unstructured.Unstructured {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(o.gvk)
	empty.SetNamespace(o.Namespace)
	empty.SetName(o.Name)
	return empty
}

// contentOf returns equal texts for objects with equal contents: without status, owners and counters. The overrides of
// a ClusterVersion are a map, so their order does not count.
func contentOf(live *unstructured.Unstructured) string {
	content := map[string]any{}
	live = live.DeepCopy()
	if entries, found, err := unstructured.NestedSlice(live.Object, "spec", "overrides"); found && err == nil {
		slices.SortFunc(entries, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) // maps are printed in order
		_ = unstructured.SetNestedSlice(live.Object, entries, "spec", "overrides")                            // the maps around it exist
	}
	for _, name := range []string{"spec", "data"} {
		if value, is := live.Object[name]; is {
			content[name] = value
		}
	}
	annotations := maps.Clone(live.GetAnnotations())
	delete(annotations, "deployment.kubernetes.io/revision")
	delete(annotations, patch.OptOutAnnotation)
	if len(annotations) > 0 {
		content["annotations"] = annotations
	}
	if len(live.GetLabels()) > 0 {
		content["labels"] = live.GetLabels()
	}
	text, _ := json.Marshal(content) // of decoded JSON
	return string(text)
}
