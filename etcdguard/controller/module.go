package controller

import (
	"flag"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch/manager"
)

var (
	nodeKind         = corev1.SchemeGroupVersion.WithKind("Node")
	versionObject    = manager.Object{GroupVersionKind: configv1.GroupVersion.WithKind("ClusterVersion"), Name: etcdguard.ClusterVersionName, Optional: true}
	etcdObject       = manager.Object{GroupVersionKind: operatorv1.GroupVersion.WithKind("Etcd"), Name: etcdguard.OperatorName, Optional: true}
	deploymentObject = inNamespace(appsv1.SchemeGroupVersion.WithKind("Deployment"), etcdguard.GuardName)
	budgetObject     = inNamespace(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), etcdguard.GuardName)
	podsBudgetObject = inNamespace(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), etcdguard.PodsBudgetName)

	// Of these nothing is held but metadata: of a Secret because of what is in it, of nodes because there are so many. A selector
	// cannot ask for either of two roles, so the nodes are two objects.
	masterObjects  = manager.Object{GroupVersionKind: nodeKind, Labels: etcdguard.MasterRole, MetadataOnly: true}
	arbiterObjects = manager.Object{GroupVersionKind: nodeKind, Labels: etcdguard.ArbiterRole, MetadataOnly: true}
	secretObject   = aside(inNamespace(corev1.SchemeGroupVersion.WithKind("Secret"), etcdguard.ClientSecret))
	bundleObject   = aside(inNamespace(corev1.SchemeGroupVersion.WithKind("ConfigMap"), etcdguard.CABundle))
)

func inNamespace(kind schema.GroupVersionKind, name string) manager.Object {
	return manager.Object{GroupVersionKind: kind, Namespace: etcdguard.Namespace, Name: name}
}

func aside(o manager.Object) manager.Object {
	o.MetadataOnly = true
	return o
}

// Module is the etcdguard module for a manager. The zero value is ready to use.
type Module struct {
	image     string
	endpoints string
	// connections outlive the controllers, which start anew whenever the leader election follows the topology.
	connections connections
}

var _ manager.Module = &Module{}

// Name implements manager.Module.
func (*Module) Name() string { return etcdguard.Name }

// BindFlags implements manager.Module.
func (m *Module) BindFlags(flags *flag.FlagSet) {
	flags.StringVar(&m.image, "image", m.image,
		"Image of the guards, with curl and sleep in it; without it that of the guard that is there, and none is made where there is none.")
	flags.StringVar(&m.endpoints, "etcd-endpoints", m.endpoints,
		"Where etcd answers, as a comma-separated list of https://, http:// or unix:// URLs; without it port 2379 of the control-plane nodes.")
}

// Validate implements manager.Module.
func (m *Module) Validate() error {
	if _, err := parseEndpoints(m.endpoints); err != nil {
		return fmt.Errorf("--etcd-endpoints: %w", err)
	}
	return nil
}

// Objects implements manager.Module. A cluster without an etcd operator or a cluster-version-operator serves neither of their
// kinds, and is guarded all the same.
func (*Module) Objects() []manager.Object {
	return []manager.Object{
		manager.Infrastructure, versionObject, etcdObject, deploymentObject, budgetObject, podsBudgetObject,
		masterObjects, arbiterObjects, secretObject, bundleObject,
	}
}

// Look implements manager.Module.
func (m *Module) Look(env manager.Environment) (manager.Look, error) {
	endpoints, err := parseEndpoints(m.endpoints)
	if err != nil {
		return nil, fmt.Errorf("--etcd-endpoints: %w", err)
	}
	p := &patcher{
		live: env.Live, cache: env.Reader, image: m.image, members: &etcdMembers{reader: env.Live, endpoints: endpoints, connections: &m.connections},
		writer: writer{client: env.Client, recorder: env.Metrics, dryRun: env.Options.DryRun, force: env.Options.ForceConflicts},
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
		Reporter: env.Reporter(mgr, etcdguard.Name, etcdguard.ConditionPrefix, "deployment/"+etcdguard.GuardName),
	}
	return controller.Watch(mgr, m, env)
}
