// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"flag"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/solonode/sno/topology"
)

// Options are the operator's flags.
type Options struct {
	// Downloads includes the downloads Deployment and its budget. Without it both are ignored, as in a release whose
	// cluster-version-operator has the Deployment as a static manifest.
	Downloads bool
	Stock     bool
}

// DefaultOptions returns the defaults of the flags.
func DefaultOptions() Options { return Options{Downloads: true} }

// BindFlags adds the flags, with the current options as defaults.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Downloads, "downloads", o.Downloads, "Maintain the downloads Deployment; false if it is a static manifest.")
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Use the rules of the stock operator instead of the vendored module.")
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
