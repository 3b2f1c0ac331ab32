// SPDX-License-Identifier: Apache-2.0

package operator

import (
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/topology"
)

// effectivePublishing returns how the router is published: by the status, which never changes, else by the spec, else
// by the platform: a load balancer where it provides one, otherwise ports of the nodes (U-ING-7).
func effectivePublishing(ic *operatorv1.IngressController, platform configv1.PlatformType) *operatorv1.EndpointPublishingStrategy {
	switch {
	case ic.Status.EndpointPublishingStrategy != nil:
		return ic.Status.EndpointPublishingStrategy.DeepCopy()
	case ic.Spec.EndpointPublishingStrategy != nil:
		return ic.Spec.EndpointPublishingStrategy.DeepCopy()
	case topology.ProvidesLoadBalancer(platform):
		return &operatorv1.EndpointPublishingStrategy{
			Type: operatorv1.LoadBalancerServiceStrategyType,
			LoadBalancer: &operatorv1.LoadBalancerStrategy{
				Scope: operatorv1.ExternalLoadBalancer, DNSManagementPolicy: operatorv1.ManagedLoadBalancerDNS,
			},
		}
	}
	return &operatorv1.EndpointPublishingStrategy{
		Type: operatorv1.HostNetworkStrategyType,
		HostNetwork: &operatorv1.HostNetworkStrategy{
			Protocol: operatorv1.TCPProtocol, HTTPPort: 80, HTTPSPort: 443, StatsPort: 1936,
		},
	}
}
