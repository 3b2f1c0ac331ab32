package operator

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/topology"
)

// rules are the questions whose answers depend on the topology.
type rules struct {
	// minimum is how many control-plane nodes must be there before the Deployments are made; overrides are the raw bytes of
	// spec.unsupportedConfigOverrides. nil waits for none and reads no override.
	minimum func(cluster topology.Cluster, overrides []byte) (auth.Minimum, error)
	// count is how many of the nodes with the master role the pods are for, given what they tolerate.
	count func(nodes []corev1.Node, tolerations []corev1.Toleration) int32
	// oauthServer and oauthAPIServer make a Deployment that base returned fit the cluster. An error means that there is no answer yet.
	oauthServer, oauthAPIServer func(base *appsv1.Deployment, s place) (shaped, error)
	// readiness judges one look at the API servers.
	readiness func(mode configv1.TopologyMode, probes []error, before auth.WellKnownState, now time.Time) auth.Readiness
}

// place is where the Deployments are to fit.
type place struct {
	cluster topology.Cluster
	// nodes is how many control-plane nodes the pods are for.
	nodes int32
}

// shaped is a Deployment and what goes with it.
type shaped struct {
	deployment *appsv1.Deployment
	// budget is nil where there must be none.
	budget *policyv1.PodDisruptionBudget
	// keepBudget leaves the budget alone, whether there is one or not.
	keepBudget bool
}
