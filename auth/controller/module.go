package controller

import (
	"flag"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch/manager"
)

var (
	authenticationObject = manager.Object{
		GroupVersionKind: operatorv1.GroupVersion.WithKind("Authentication"), Name: auth.ConfigName, Optional: true,
	}
	clusterVersionObject = manager.Object{
		GroupVersionKind: configv1.GroupVersion.WithKind("ClusterVersion"), Name: auth.ClusterVersionName, Optional: true,
	}
	nodeObjects = manager.Object{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Node"), Labels: auth.ControlPlaneNodeLabel,
	}
	serverObject    = deploymentObject(auth.OAuthServerNamespace, auth.OAuthServerName)
	apiServerObject = deploymentObject(auth.OAuthAPIServerNamespace, auth.OAuthAPIServerName)
)

func deploymentObject(namespace, name string) manager.Object {
	return manager.Object{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Namespace: namespace, Name: name}
}

// Module is the auth module for a manager. The zero value is ready to use.
type Module struct {
	override string
}

var _ manager.Module = &Module{}

// Name implements manager.Module.
func (*Module) Name() string { return auth.Name }

// BindFlags implements manager.Module.
func (m *Module) BindFlags(flags *flag.FlagSet) {
	flags.StringVar(&m.override, "override", string(auth.OverrideAuto),
		"When to set the override by which old releases run the OAuth servers on one control-plane node: auto (by the release; one that nothing is known about needs none), always or never.")
}

// Validate implements manager.Module.
func (m *Module) Validate() error {
	if _, err := auth.ParseOverridePolicy(m.override); err != nil {
		return fmt.Errorf("--override: %w", err)
	}
	return nil
}

// Objects implements manager.Module.
func (*Module) Objects() []manager.Object {
	return []manager.Object{
		manager.Infrastructure, authenticationObject, clusterVersionObject, nodeObjects, serverObject, apiServerObject,
	}
}

// Look implements manager.Module.
func (m *Module) Look(env manager.Environment) (manager.Look, error) {
	p, err := m.patcher(env)
	if err != nil {
		return nil, err
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
		Reporter: env.Reporter(mgr, auth.Name, auth.ConditionPrefix, "authentication/"+auth.ConfigName),
	}
	return controller.Watch(mgr, m, env)
}

func (m *Module) patcher(env manager.Environment) (*patcher, error) {
	policy, err := auth.ParseOverridePolicy(m.override)
	if err != nil {
		return nil, fmt.Errorf("--override: %w", err)
	}
	p := &patcher{
		reader: env.Reader, override: policy, forceConflicts: env.Options.ForceConflicts,
		authentication: env.Applier(auth.Name), deployments: env.Applier(auth.Name),
	}
	// What others wrote into the overrides is theirs, whatever the flags say.
	p.authentication.ForceConflicts = false
	return p, nil
}
