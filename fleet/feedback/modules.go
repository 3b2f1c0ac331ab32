// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/solonode/sno/approver"
	approverdecision "github.com/solonode/sno/approver/decision"
	"github.com/solonode/sno/auth"
	authdecision "github.com/solonode/sno/auth/decision"
	"github.com/solonode/sno/console"
	consoledecision "github.com/solonode/sno/console/decision"
	"github.com/solonode/sno/etcdguard"
	etcdguarddecision "github.com/solonode/sno/etcdguard/decision"
	"github.com/solonode/sno/ingress"
	ingressdecision "github.com/solonode/sno/ingress/decision"
	"github.com/solonode/sno/machineconfig"
	machineconfigdecision "github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/patch"
)

// Module is a module as the hub sees it: the object with its conditions.
type Module struct {
	Name   string
	Prefix string // of the condition types
	Kind   schema.GroupVersionKind
	// Resource identifies the object in a ManifestWork.
	Resource workv1.ResourceIdentifier
	// Settled are the reasons with which nothing is left to do although the patch is not in force.
	Settled []string
}

// Modules returns all modules, sorted by name.
func Modules() []Module {
	operator, config := operatorv1.GroupVersion.WithKind, configv1.GroupVersion.WithKind
	return []Module{
		module(approver.Name, approverdecision.ConditionPrefix, config("ClusterOperator"), "clusteroperators", "", "machine-approver"),
		module(auth.Name, authdecision.ConditionPrefix, operator("Authentication"), "authentications", "", auth.ConfigName,
			authdecision.ReasonExternalControlPlane, authdecision.ReasonOverrideSetByOther),
		module(console.Name, consoledecision.ConditionPrefix, operator("Console"), "consoles", "", console.OperatorName),
		module(etcdguard.Name, etcdguarddecision.ConditionPrefix, operator("Etcd"), "etcds", "", etcdguard.OperatorName),
		module(ingress.Name, ingressdecision.ConditionPrefix, operator("IngressController"), "ingresscontrollers",
			ingress.IngressControllerNamespace, ingress.IngressControllerName, ingressdecision.ReasonExternalControlPlane),
		module(machineconfig.Name, machineconfigdecision.ConditionPrefix, operator("MachineConfiguration"), "machineconfigurations", "", machineconfig.OperatorName),
	}
}

func module(name, prefix string, kind schema.GroupVersionKind, resource, namespace, object string, settled ...string) Module {
	return Module{
		Name: name, Prefix: prefix, Kind: kind,
		Resource: workv1.ResourceIdentifier{Group: kind.Group, Resource: resource, Namespace: namespace, Name: object},
		Settled:  append([]string{patch.ReasonNotNeeded, patch.ReasonOptedOut}, settled...),
	}
}

// Names returns the names of all modules.
func Names() []string {
	var names []string
	for _, m := range Modules() {
		names = append(names, m.Name)
	}
	return names
}

// Manifest returns the object as a manifest. It has no fields: the work agent only reads it,
// and must not be able to delete it.
func (m Module) Manifest() *unstructured.Unstructured {
	return manifest(m.Kind, m.Resource)
}

func manifest(kind schema.GroupVersionKind, resource workv1.ResourceIdentifier) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(resource.Namespace)
	u.SetName(resource.Name)
	u.SetAnnotations(map[string]string{addonv1alpha1.DeletionOrphanAnnotationKey: ""})
	return u
}

// Names of feedback values of a module.
const (
	valueInForce    = "inForce"
	valueReason     = "reason"
	valueMessage    = "message"
	valueSince      = "since"
	valueInProgress = "inProgress"
	valueFailing    = "failing"
)

// ManifestConfig returns how the work agent treats the object: it reads and watches it, and reports our conditions. The
// manifest is Available only when the patch is settled, so that a rollout waits for that instead of for the object,
// which always exists.
func (m Module) ManifestConfig() workv1.ManifestConfigOption {
	inForce := patch.InForceCondition(m.Prefix)
	option := readOnly(m.Resource,
		condition(valueInForce, inForce, "status"), condition(valueReason, inForce, "reason"),
		condition(valueMessage, inForce, "message"), condition(valueSince, inForce, "lastTransitionTime"),
		condition(valueInProgress, patch.InProgressCondition(m.Prefix), "status"),
		condition(valueFailing, patch.FailingCondition(m.Prefix), "status"))
	option.ConditionRules = []workv1.ConditionRule{m.rule()}
	return option
}

func condition(name, kind, field string) workv1.JsonPath {
	return workv1.JsonPath{Name: name, Path: fmt.Sprintf(`.status.conditions[?(@.type==%q)].%s`, kind, field)}
}

func readOnly(resource workv1.ResourceIdentifier, paths ...workv1.JsonPath) workv1.ManifestConfigOption {
	return workv1.ManifestConfigOption{
		ResourceIdentifier: resource,
		UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly},
		FeedbackRules:      []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: paths}},
		FeedbackScrapeType: workv1.FeedbackWatchType,
	}
}

// rule replaces the work agent's own condition Available.
func (m Module) rule() workv1.ConditionRule {
	inForce, inProgress := patch.InForceCondition(m.Prefix), patch.InProgressCondition(m.Prefix)
	reasons := `["` + strings.Join(m.Settled, `", "`) + `"]`
	const reported = `has(object.status) && hasConditions(object.status)`
	return workv1.ConditionRule{
		Type: workv1.CelConditionExpressionsType, Condition: workv1.ManifestAvailable,
		CelExpressions: []string{
			reported,
			fmt.Sprintf(`object.status.conditions.exists(c, c.type == %q && (c.status == "True" || has(c.reason) && c.reason in %s))`, inForce, reasons),
			fmt.Sprintf(`object.status.conditions.exists(c, c.type == %q && c.status == "False")`, inProgress),
		},
		MessageExpression: fmt.Sprintf(`%q + (%s && object.status.conditions.exists(c, c.type == %q && has(c.reason)) ? `+
			`object.status.conditions.filter(c, c.type == %q)[0].reason : "not reported")`, m.Name+": ", reported, inForce, inForce),
	}
}
