package operator

import (
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/topology"
)

// desiredDefault is the default IngressController to create when there is none; nil for none.
func desiredDefault(cluster topology.Cluster, placement configv1.DefaultPlacement) *operatorv1.IngressController {
	return ingress.DefaultIngressController(cluster, placement, ingress.PlacementFromTopology)
}

// desiredOperand is what an IngressController becomes: a router, and a budget or none.
func desiredOperand(cluster topology.Cluster, placement configv1.DefaultPlacement, ic *operatorv1.IngressController) (*appsv1.Deployment, *policyv1.PodDisruptionBudget) {
	ic = ic.DeepCopy()
	ic.Status.EndpointPublishingStrategy = effectivePublishing(ic, cluster.Platform)
	host := ingress.Host{Cluster: cluster, DefaultPlacement: placement, IngressController: ic}
	base := baseRouter(ic)
	budget := ingress.RouterPodDisruptionBudget(host, base.Spec.Selector.MatchLabels)
	if budget != nil {
		budget.Labels = owned(ic.Name)
	}
	return ingress.ShapeRouter(base, host), budget
}
