package controller

import (
	"flag"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/manager"
)

var (
	ingressObject    = manager.Object{GroupVersionKind: configv1.GroupVersion.WithKind("Ingress"), Name: ingress.ConfigName}
	controllerObject = manager.Object{
		GroupVersionKind: operatorv1.GroupVersion.WithKind("IngressController"),
		Namespace:        ingress.IngressControllerNamespace, Name: ingress.IngressControllerName,
	}
	routerObject = manager.Object{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		Namespace:        ingress.RouterNamespace, Name: ingress.RouterName,
	}
)

// Module is the ingress module for a manager. The zero value is ready to use.
type Module struct {
	placement string
}

var _ manager.Module = &Module{}

// Name implements manager.Module.
func (*Module) Name() string { return ingress.Name }

// BindFlags implements manager.Module.
func (m *Module) BindFlags(flags *flag.FlagSet) {
	flags.StringVar(&m.placement, "placement", string(ingress.PlacementFromTopology),
		"Which decides where the router belongs when they disagree: topology (infrastructureTopology, as the enhancement asks) or defaultPlacement (of ingresses.config/cluster).")
}

// Validate implements manager.Module.
func (m *Module) Validate() error {
	if _, err := ingress.ParsePlacementSource(m.placement); err != nil {
		return fmt.Errorf("--placement: %w", err)
	}
	return nil
}

// Objects implements manager.Module.
func (*Module) Objects() []manager.Object {
	return []manager.Object{manager.Infrastructure, ingressObject, controllerObject, routerObject}
}

// Look implements manager.Module.
func (m *Module) Look(env manager.Environment) (manager.Look, error) {
	placement, err := ingress.ParsePlacementSource(m.placement)
	if err != nil {
		return nil, fmt.Errorf("--placement: %w", err)
	}
	var overridable []apply.Overridable
	for _, replicasManager := range ingress.ReplicasManagers() {
		overridable = append(overridable, apply.Overridable{Field: ingress.FieldReplicas, Manager: replicasManager})
	}
	p := &patcher{
		reader: env.Reader, placement: placement, forceConflicts: env.Options.ForceConflicts,
		applier: env.Applier(ingress.Name, overridable...),
	}
	return p.look, nil
}

// Setup implements manager.Module.
func (m *Module) Setup(mgr ctrl.Manager, env manager.Environment) error {
	look, err := m.Look(env)
	if err != nil {
		return err
	}
	controller := &manager.Controller{
		Look:     look,
		Reporter: env.Reporter(mgr, ingress.Name, ingress.ConditionPrefix, "ingresscontroller/"+ingress.IngressControllerName),
	}
	return controller.Watch(mgr, m, env)
}
