package operator

import (
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/solonode/sno/topology"
)

// inputs are what both answers follow from.
type inputs struct {
	cluster   topology.Cluster
	placement configv1.DefaultPlacement
	// ic is the IngressController whose router is shaped, with the publishing strategy in effect in its status. It is only read.
	ic *operatorv1.IngressController
}

// rules are the two questions whose answers depend on the topology. An error means that there is no answer, and nothing is written.
type rules struct {
	// defaultIngressController is the default IngressController to create when there is none; nil for none.
	defaultIngressController func(topology.Cluster, configv1.DefaultPlacement) (*operatorv1.IngressController, error)
	// shape makes the router that baseRouter returned fit the topology. The budget is nil when there must be none.
	shape func(*appsv1.Deployment, inputs) (*appsv1.Deployment, *policyv1.PodDisruptionBudget, error)
}
