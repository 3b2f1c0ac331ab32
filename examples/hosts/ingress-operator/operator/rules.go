package operator

import (
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/topology"
)

// rules are the two questions whose answers depend on the topology.
type rules struct {
	// defaultIngressController is the default IngressController to create when there is none; nil for none.
	defaultIngressController func(topology.Cluster, configv1.DefaultPlacement) *operatorv1.IngressController
	// shape makes the router that baseRouter returned fit the topology. The budget is nil when there must be none.
	shape func(*appsv1.Deployment, ingress.Host) (*appsv1.Deployment, *policyv1.PodDisruptionBudget)
}
