package controller

import (
	"flag"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/manager"
)

var (
	operatorObject  = manager.Object{GroupVersionKind: operatorv1.GroupVersion.WithKind("Console"), Name: console.OperatorName, Optional: true}
	versionObject   = manager.Object{GroupVersionKind: configv1.GroupVersion.WithKind("ClusterVersion"), Name: console.ClusterVersionName, Optional: true}
	consoleObject   = deployment(console.ConsoleName)
	downloadsObject = deployment(console.DownloadsName)
	consoleBudget   = budget(console.ConsoleName)
	downloadsBudget = budget(console.DownloadsName)
)

func deployment(name string) manager.Object {
	return manager.Object{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Namespace: console.Namespace, Name: name}
}

func budget(name string) manager.Object {
	return manager.Object{GroupVersionKind: policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), Namespace: console.Namespace, Name: name}
}

// Module is the console module for a manager. The zero value is ready to use.
type Module struct{}

var _ manager.Module = &Module{}

// Name implements manager.Module.
func (*Module) Name() string { return console.Name }

// BindFlags implements manager.Module. The module has no flags of its own.
func (*Module) BindFlags(*flag.FlagSet) {}

// Validate implements manager.Module.
func (*Module) Validate() error { return nil }

// Objects implements manager.Module. A cluster without a console operator or a cluster-version-operator serves neither of
// their kinds, and is shaped all the same.
func (*Module) Objects() []manager.Object {
	return []manager.Object{
		manager.Infrastructure, operatorObject, versionObject, consoleObject, downloadsObject, consoleBudget, downloadsBudget,
	}
}

// Look implements manager.Module.
func (*Module) Look(env manager.Environment) (manager.Look, error) {
	p := newPatcher(env.Reader, env.Live, func(overridable ...apply.Overridable) *apply.Applier {
		return env.Applier(console.Name, overridable...)
	})
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
		Reporter: env.Reporter(mgr, console.Name, console.ConditionPrefix, "console/"+console.OperatorName),
	}
	return controller.Watch(mgr, m, env)
}
