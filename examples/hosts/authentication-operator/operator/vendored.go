// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/topology"
)

func vendoredRules() rules {
	return rules{
		minimum: func(cluster topology.Cluster, overrides []byte) (auth.Minimum, error) {
			minimum, err := auth.MinimumControlPlaneNodes(cluster, overrides)
			if cluster.PoolFor(topology.ControlPlanePool) != topology.ControlPlanePool {
				minimum.Nodes = 0 // the cluster has no control-plane nodes
			}
			return minimum, err
		},
		count:          schedulableControlPlaneNodes,
		oauthServer:    vendored(auth.ShapeOAuthServer, auth.OAuthServerPodDisruptionBudget),
		oauthAPIServer: vendored(auth.ShapeOAuthAPIServer, auth.OAuthAPIServerPodDisruptionBudget),
		readiness:      auth.WellKnownReadiness,
	}
}

func vendored(
	shape func(*appsv1.Deployment, topology.Cluster, int32) (*appsv1.Deployment, error),
	budget func(topology.Cluster, map[string]string) (*policyv1.PodDisruptionBudget, error),
) func(*appsv1.Deployment, place) (shaped, error) {
	return func(base *appsv1.Deployment, s place) (result shaped, err error) {
		if result.deployment, err = shape(base, s.cluster, s.nodes); err != nil {
			return shaped{}, fmt.Errorf("shaping %s: %w", client.ObjectKeyFromObject(base), err)
		}
		if result.budget, err = budget(s.cluster, base.Spec.Selector.MatchLabels); err != nil {
			return shaped{}, fmt.Errorf("shaping the budget of %s: %w", client.ObjectKeyFromObject(base), err)
		}
		return result, nil
	}
}
