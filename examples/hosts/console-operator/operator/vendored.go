// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/topology"
)

// shape adapts a Deployment of baseDeployment to the topology. The budget is nil if there must be none. After an error
// nothing is written.
type shape func(base *appsv1.Deployment, cluster topology.Cluster) (*appsv1.Deployment, *policyv1.PodDisruptionBudget, error)

func vendoredShape(base *appsv1.Deployment, cluster topology.Cluster) (*appsv1.Deployment, *policyv1.PodDisruptionBudget, error) {
	deployment, err := console.ShapeDeployment(base, cluster)
	if err != nil {
		return nil, nil, fmt.Errorf("shaping Deployment %s: %w", base.Name, err)
	}
	budget, err := console.PodDisruptionBudget(base.Name, cluster)
	if err != nil {
		return nil, nil, fmt.Errorf("shaping the budget of Deployment %s: %w", base.Name, err)
	}
	return deployment, budget, nil
}
