// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"flag"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/console/decision"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/overrides"
)

var (
	operatorObject = controller.Object{GroupVersionKind: operatorv1.GroupVersion.WithKind("Console"), Name: console.OperatorName, Optional: true}
	versionObject  = controller.Object{
		GroupVersionKind: configv1.GroupVersion.WithKind("ClusterVersion"), Name: overrides.ClusterVersionName, Optional: true,
	}
	consoleObject   = object(appsv1.SchemeGroupVersion.WithKind("Deployment"), console.ConsoleName)
	downloadsObject = object(appsv1.SchemeGroupVersion.WithKind("Deployment"), console.DownloadsName)
	consoleBudget   = object(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), console.ConsoleName)
	downloadsBudget = object(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), console.DownloadsName)
)

func object(kind schema.GroupVersionKind, name string) controller.Object {
	return controller.Object{GroupVersionKind: kind, Namespace: console.Namespace, Name: name}
}

// Module implements controller.Module. The zero value is ready to use.
type Module struct{}

// Name implements controller.Module.
func (*Module) Name() string { return console.Name }

// BindFlags implements controller.Module.
func (*Module) BindFlags(*flag.FlagSet) {}

// Validate implements controller.Module.
func (*Module) Validate() error { return nil }

// Objects implements controller.Module.
func (*Module) Objects() []controller.Object {
	return []controller.Object{
		controller.Infrastructure, operatorObject, versionObject, consoleObject, downloadsObject, consoleBudget, downloadsBudget,
	}
}

// Reconciler implements controller.Module.
func (*Module) Reconciler(env controller.Environment) (controller.ReconcileFunc, error) {
	return newPatcher(env).reconcile, nil
}

// StatusNames implements controller.Module.
func (*Module) StatusNames() (prefix, object string) {
	return decision.ConditionPrefix, "console/" + console.OperatorName
}
