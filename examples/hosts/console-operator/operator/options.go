package operator

import (
	"flag"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/solonode/sno/topology"
)

// Options are the operator's flags.
type Options struct {
	// Downloads makes and keeps the downloads Deployment and its budget too. Without it both are left alone, as by a console
	// operator of a release whose cluster-version-operator brings the Deployment as a static manifest.
	Downloads bool
	// Stock decides as today's stock operator does, without the vendored module.
	Stock bool
}

// DefaultOptions are those without any flags.
func DefaultOptions() Options { return Options{Downloads: true} }

// BindFlags adds the flags. What the options hold now is the default.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Downloads, "downloads", o.Downloads, "Make and keep the downloads Deployment; false leaves it to its static manifest.")
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Decide as today's stock operator does instead of calling the vendored module.")
}

func (o Options) shape() shape {
	if o.Stock {
		return func(base *appsv1.Deployment, cluster topology.Cluster) (*appsv1.Deployment, *policyv1.PodDisruptionBudget, error) {
			deployment, budget := stockShape(base, cluster)
			return deployment, budget, nil
		}
	}
	return vendoredShape
}
