// SPDX-License-Identifier: Apache-2.0

package operator

import (
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/solonode/sno/topology"
)

// inputs are the inputs of both rules.
type inputs struct {
	cluster   topology.Cluster
	placement configv1.DefaultPlacement
	// ic is the router's IngressController, with the effective publishing strategy in its status. It is read-only.
	ic *operatorv1.IngressController
}

// rules are the two decisions that depend on the topology. After an error nothing is written.
type rules struct {
	// defaultIngressController returns the default IngressController to create if there is none; nil for none.
	defaultIngressController func(topology.Cluster, configv1.DefaultPlacement) (*operatorv1.IngressController, error)
	// shape adapts the router of baseRouter to the topology. The budget is nil if there must be none.
	shape func(*appsv1.Deployment, inputs) (*appsv1.Deployment, *policyv1.PodDisruptionBudget, error)
}
