// SPDX-License-Identifier: Apache-2.0

package existing

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

// ProviderName is the provider in reports.
const ProviderName = "existing"

// Options choose and describe the cluster.
type Options struct {
	// Kubeconfig is a file; empty for $KUBECONFIG, ~/.kube/config, and then the pod's service account.
	Kubeconfig string
	// Scenario is the cluster's name in reports; empty for its infrastructure name.
	Scenario string
	// Image is that of copies; empty for one that the cluster runs already, see cluster.Target.
	Image string
	// PayloadNamespaces are those of OpenShift's own objects; empty for cluster.PayloadNamespaces.
	PayloadNamespaces []string
	// Tiers are those of the selected checks; the account needs their permissions.
	Tiers []catalogue.Tier
	// Route is set for a recovery, in which the router is deleted while requests are sent through this Route; the account
	// needs permission for both.
	Route *types.NamespacedName
	// RebootCommand, OutageCommand and UpgradeCommand are lines of the shell that perform acts which the API alone does
	// not allow. The first gets a node's name as its last argument, and the second the length in OutageVariable. They are
	// optional; checks that need a missing one are skipped.
	RebootCommand, OutageCommand, UpgradeCommand string
	// Artifacts is a folder for the output of these commands; empty for none.
	Artifacts string
	Progress  io.Writer
}

// Target connects to a cluster. It returns ErrKubeconfig, ErrUnreachable, or catalogue.ErrForbidden with all missing
// permissions. The target cannot change topologies, because an API alone cannot create the nodes that another topology
// needs.
func Target(ctx context.Context, options Options) (cluster.Target, error) {
	c, err := connect(ctx, options.Kubeconfig)
	if err != nil {
		return cluster.Target{}, err
	}
	served, err := c.served()
	if err != nil {
		return cluster.Target{}, err
	}
	missing, err := lacking(ctx, c.kube, requiredBy(options.Tiers, options.Route), served)
	if err != nil {
		return cluster.Target{}, fmt.Errorf("%w: %s: %w", ErrUnreachable, c.source, err)
	}
	if len(missing) > 0 {
		return cluster.Target{}, forbidden(c.source, missing, options.Tiers)
	}
	target := cluster.Target{
		Config: c.config, Scenario: options.Scenario, Description: "existing cluster at " + c.config.Host,
		Provider: ProviderName, Times: cluster.RealTimes(), Image: options.Image, Progress: options.Progress,
		PayloadNamespaces: options.PayloadNamespaces,
	}
	attach(&target, options)
	return target, nil
}

// served returns the resources of the server. Groups with an unavailable aggregated server are left out.
func (c *connection) served() (map[schema.GroupResource]bool, error) {
	_, lists, err := c.kube.Discovery().ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("%w: %s: discover resources: %w", ErrUnreachable, c.source, err)
	}
	served := map[schema.GroupResource]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: discover resources: %w", ErrUnreachable, c.source, err)
		}
		for _, resource := range list.APIResources {
			served[schema.GroupResource{Group: version.Group, Resource: resource.Name}] = true
		}
	}
	return served, nil
}
