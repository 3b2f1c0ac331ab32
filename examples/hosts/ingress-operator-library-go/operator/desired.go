// SPDX-License-Identifier: Apache-2.0

package operator

import (
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/topology"
)

// desiredDefault returns the default IngressController to create if there is none; nil for none.
func desiredDefault(cluster topology.Cluster, placement configv1.DefaultPlacement) (*operatorv1.IngressController, error) {
	return ingress.DefaultIngressController(cluster, placement, ingress.PlacementFromTopology)
}

// desiredOperand returns the router of an IngressController, and its budget if any. It returns an error if there is no
// result, for example for an impossible node selector.
func desiredOperand(cluster topology.Cluster, placement configv1.DefaultPlacement, ic *operatorv1.IngressController) (*appsv1.Deployment, *policyv1.PodDisruptionBudget, error) {
	ic = ic.DeepCopy()
	ic.Status.EndpointPublishingStrategy = effectivePublishing(ic, cluster.Platform)
	host, err := ingress.NewHost(cluster, placement, ic)
	if err != nil {
		return nil, nil, err
	}
	base := baseRouter(ic)
	budget, err := ingress.RouterPodDisruptionBudget(host, base.Spec.Selector.MatchLabels)
	if err != nil {
		return nil, nil, err
	}
	if budget != nil {
		budget.Labels = owned(ic.Name)
	}
	router, err := ingress.ShapeRouter(base, host)
	return router, budget, err
}
