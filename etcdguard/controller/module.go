// SPDX-License-Identifier: Apache-2.0

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/etcdguard/decision"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/overrides"
)

var (
	nodeKind      = corev1.SchemeGroupVersion.WithKind("Node")
	budgetKind    = policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
	versionObject = controller.Object{
		GroupVersionKind: configv1.GroupVersion.WithKind("ClusterVersion"), Name: overrides.ClusterVersionName, Optional: true}
	etcdObject       = controller.Object{GroupVersionKind: operatorv1.GroupVersion.WithKind("Etcd"), Name: etcdguard.OperatorName, Optional: true}
	deploymentObject = inNamespace(appsv1.SchemeGroupVersion.WithKind("Deployment"), etcdguard.GuardName, false)
	budgetObject     = inNamespace(budgetKind, etcdguard.GuardName, false)
	podsBudgetObject = inNamespace(budgetKind, etcdguard.PodsBudgetName, false)

	// One label selector cannot match either of two roles, so the nodes are two objects.
	masterObjects  = controller.Object{GroupVersionKind: nodeKind, Labels: etcdguard.MasterRole, MetadataOnly: true}
	arbiterObjects = controller.Object{GroupVersionKind: nodeKind, Labels: etcdguard.ArbiterRole, MetadataOnly: true}
	secretObject   = inNamespace(corev1.SchemeGroupVersion.WithKind("Secret"), etcdguard.ClientSecret, true)
	bundleObject   = inNamespace(corev1.SchemeGroupVersion.WithKind("ConfigMap"), etcdguard.CABundle, true)
)

func inNamespace(kind schema.GroupVersionKind, name string, metadataOnly bool) controller.Object {
	return controller.Object{GroupVersionKind: kind, Namespace: etcdguard.Namespace, Name: name, MetadataOnly: metadataOnly}
}

// Module is the etcdguard module for a process. The zero value is ready to use.
type Module struct {
	image     string
	endpoints string
}

var _ controller.Module = &Module{}

// Name implements controller.Module.
func (*Module) Name() string { return etcdguard.Name }

// BindFlags implements controller.Module.
func (m *Module) BindFlags(flags *flag.FlagSet) {
	flags.StringVar(&m.image, "image", m.image,
		"Image of the guards, which needs curl and sleep. By default the image of the live guard is kept, and no guard is created.")
	flags.StringVar(&m.endpoints, "etcd-endpoints", m.endpoints,
		"Endpoints of etcd, a comma-separated list of https://, http:// or unix:// URLs. The default is port 2379 of the control-plane nodes.")
}

// Validate implements controller.Module.
func (m *Module) Validate() error {
	if _, err := parseEndpoints(m.endpoints); err != nil {
		return fmt.Errorf("--etcd-endpoints: %w", err)
	}
	return nil
}

// Objects implements controller.Module.
func (*Module) Objects() []controller.Object {
	return []controller.Object{
		controller.Infrastructure, versionObject, etcdObject, deploymentObject, budgetObject, podsBudgetObject,
		masterObjects, arbiterObjects, secretObject, bundleObject,
	}
}

// Reconciler implements controller.Module.
func (m *Module) Reconciler(env controller.Environment) (controller.ReconcileFunc, error) {
	endpoints, err := parseEndpoints(m.endpoints)
	if err != nil {
		return nil, fmt.Errorf("--etcd-endpoints: %w", err)
	}
	if env.Options.DryRun {
		env.Client = client.NewDryRunClient(env.Client)
	}
	env.Client = client.WithFieldOwner(env.Client, decision.FieldOwner)
	return (&patcher{Environment: env, image: m.image, endpoints: endpoints}).reconcile, nil
}

// StatusNames implements controller.Module.
func (*Module) StatusNames() (prefix, object string) {
	return decision.ConditionPrefix, "deployment/" + etcdguard.GuardName
}
