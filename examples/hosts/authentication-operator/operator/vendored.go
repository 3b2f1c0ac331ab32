package operator

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/topology"
)

// vendoredRules leave every answer to the vendored module.
func vendoredRules() rules {
	return rules{
		minimum: func(cluster topology.Cluster, overrides []byte) (auth.Minimum, error) {
			minimum, err := auth.MinimumControlPlaneNodes(cluster.ControlPlane.Mode, overrides)
			if cluster.PoolFor(topology.ControlPlanePool) != topology.ControlPlanePool {
				minimum.Nodes = 0 // there are no control-plane nodes in this cluster to wait for
			}
			return minimum, err
		},
		count: schedulableControlPlaneNodes,
		oauthServer: func(base *appsv1.Deployment, host auth.Host) shaped {
			return shaped{
				deployment: auth.ShapeOAuthServer(base, host),
				budget:     auth.OAuthServerPodDisruptionBudget(host, base.Spec.Selector.MatchLabels),
			}
		},
		oauthAPIServer: func(base *appsv1.Deployment, host auth.Host) shaped {
			return shaped{
				deployment: auth.ShapeOAuthAPIServer(base, host),
				budget:     auth.OAuthAPIServerPodDisruptionBudget(host, base.Spec.Selector.MatchLabels),
			}
		},
		readiness: auth.WellKnownReadiness,
	}
}
