// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"flag"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/ingress/decision"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/controller"
)

var (
	ingressObject    = controller.Object{GroupVersionKind: configv1.GroupVersion.WithKind("Ingress"), Name: ingress.ConfigName}
	controllerObject = controller.Object{
		GroupVersionKind: operatorv1.GroupVersion.WithKind("IngressController"),
		Namespace:        ingress.IngressControllerNamespace, Name: ingress.IngressControllerName,
	}
	routerObject = controller.Object{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		Namespace:        ingress.RouterNamespace, Name: ingress.RouterName,
	}
)

// Module implements controller.Module. The zero value is ready to use.
type Module struct{ placement string }

var _ controller.Module = &Module{}

// Name implements controller.Module.
func (*Module) Name() string { return ingress.Name }

// BindFlags implements controller.Module.
func (m *Module) BindFlags(flags *flag.FlagSet) {
	flags.StringVar(&m.placement, "placement", string(ingress.PlacementFromTopology),
		"Signal that decides where the router belongs: topology (infrastructureTopology, as in the enhancement) or "+
			"defaultPlacement (of ingresses.config/cluster).")
}

// Validate implements controller.Module.
func (m *Module) Validate() error {
	if _, err := ingress.ParsePlacementSource(m.placement); err != nil {
		return fmt.Errorf("--placement: %w", err)
	}
	return nil
}

// Objects implements controller.Module.
func (*Module) Objects() []controller.Object {
	return []controller.Object{controller.Infrastructure, ingressObject, controllerObject, routerObject}
}

// Reconciler implements controller.Module.
func (m *Module) Reconciler(env controller.Environment) (controller.ReconcileFunc, error) {
	var overridable []apply.Overridable
	for _, manager := range decision.ReplicasManagers() {
		overridable = append(overridable, apply.Overridable{Field: decision.FieldReplicas, Manager: manager})
	}
	p := &patcher{
		reader: env.Reader, applier: env.Applier(ingress.Name, overridable...),
		placement: ingress.PlacementSource(m.placement), forceConflicts: env.Options.ForceConflicts,
	}
	return p.reconcile, nil
}

// StatusNames implements controller.Module.
func (*Module) StatusNames() (prefix, object string) {
	return decision.ConditionPrefix, "ingresscontroller/" + ingress.IngressControllerName
}
