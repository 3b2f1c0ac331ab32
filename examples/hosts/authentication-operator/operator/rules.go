// SPDX-License-Identifier: Apache-2.0

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

// rules are the decisions that depend on the topology.
type rules struct {
	// minimum returns how many control-plane nodes must exist before the Deployments are created, from the raw bytes of
	// spec.unsupportedConfigOverrides. nil waits for none and reads no override.
	minimum func(cluster topology.Cluster, overrides []byte) (auth.Minimum, error)
	// count returns how many of the nodes with the master role the pods can use with their tolerations.
	count func(nodes []corev1.Node, tolerations []corev1.Toleration) int32
	// oauthServer and oauthAPIServer adapt a Deployment of base to the cluster. An error means that there is no result
	// yet.
	oauthServer, oauthAPIServer func(base *appsv1.Deployment, s place) (shaped, error)
	// readiness evaluates one request to each API server.
	readiness func(mode configv1.TopologyMode, probes []error, before auth.WellKnownState, now time.Time) auth.Readiness
}

type place struct {
	cluster topology.Cluster
	nodes   int32
}

type shaped struct {
	deployment *appsv1.Deployment
	// budget is nil if there must be none.
	budget *policyv1.PodDisruptionBudget
	// keepBudget means that the budget is not written.
	keepBudget bool
}
