package operator

import (
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/topology"
)

// shape makes a Deployment that baseDeployment returned fit the topology. The budget is nil where there must be none.
type shape func(base *appsv1.Deployment, cluster topology.Cluster) (*appsv1.Deployment, *policyv1.PodDisruptionBudget)

// vendoredShape leaves every answer to the vendored module.
func vendoredShape(base *appsv1.Deployment, cluster topology.Cluster) (*appsv1.Deployment, *policyv1.PodDisruptionBudget) {
	return console.ShapeDeployment(base, cluster), console.PodDisruptionBudget(base.Name, cluster)
}
