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

// vendoredRules returns the rules of the module. A router with sharedPorts shares its ports with its successor.
func vendoredRules(sharedPorts bool) rules {
	return rules{
		defaultIngressController: func(cluster topology.Cluster, placement configv1.DefaultPlacement) (*operatorv1.IngressController, error) {
			return ingress.DefaultIngressController(cluster, placement, ingress.PlacementFromTopology)
		},
		shape: func(router *appsv1.Deployment, in inputs) (*appsv1.Deployment, *policyv1.PodDisruptionBudget, error) {
			host, err := ingress.NewHost(in.cluster, in.placement, in.ic)
			if err != nil {
				return nil, nil, err
			}
			if sharedPorts {
				host = host.WithSharedHostPorts()
			}
			budget, err := ingress.RouterPodDisruptionBudget(host, router.Spec.Selector.MatchLabels)
			if err != nil {
				return nil, nil, err
			}
			shaped, err := ingress.ShapeRouter(router, host)
			return shaped, budget, err
		},
	}
}
