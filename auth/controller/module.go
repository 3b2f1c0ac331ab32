// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"flag"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/auth/decision"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/overrides"
)

var (
	authenticationObject = controller.Object{GroupVersionKind: operatorv1.GroupVersion.WithKind("Authentication"), Name: auth.ConfigName, Optional: true}
	clusterVersionObject = controller.Object{
		GroupVersionKind: configv1.GroupVersion.WithKind("ClusterVersion"), Name: overrides.ClusterVersionName, Optional: true,
	}
	nodeObjects     = controller.Object{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Node"), Labels: auth.ControlPlaneNodeLabel}
	serverObject    = deploymentObject(auth.OAuthServerNamespace, auth.OAuthServerName)
	apiServerObject = deploymentObject(auth.OAuthAPIServerNamespace, auth.OAuthAPIServerName)
)

func deploymentObject(namespace, name string) controller.Object {
	return controller.Object{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Namespace: namespace, Name: name}
}

// Module implements controller.Module. The zero value is ready to use.
type Module struct {
	override decision.OverridePolicy
}

// Name implements controller.Module.
func (*Module) Name() string { return auth.Name }

// BindFlags implements controller.Module.
func (m *Module) BindFlags(flags *flag.FlagSet) {
	flags.StringVar((*string)(&m.override), "override", string(decision.OverrideAuto),
		"When to set the override that old releases need for one control-plane node: auto (if the release is known to need it), always or never.")
}

// Validate implements controller.Module.
func (m *Module) Validate() error {
	if err := m.override.Validate(); err != nil {
		return fmt.Errorf("--override: %w", err)
	}
	return nil
}

// Objects implements controller.Module.
func (*Module) Objects() []controller.Object {
	return []controller.Object{
		controller.Infrastructure, authenticationObject, clusterVersionObject, nodeObjects, serverObject, apiServerObject,
	}
}

// Reconciler implements controller.Module.
func (m *Module) Reconciler(env controller.Environment) (controller.ReconcileFunc, error) {
	return newPatcher(env, m.override).reconcile, nil
}

// StatusNames implements controller.Module.
func (*Module) StatusNames() (prefix, object string) {
	return decision.ConditionPrefix, "authentication/" + auth.ConfigName
}
