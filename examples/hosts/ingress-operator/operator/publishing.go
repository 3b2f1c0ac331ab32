package operator

import (
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/topology"
)

// effectivePublishing is how the router is published: what the status says, which never changes once it is there, else what was
// asked for, else what the platform has. A load balancer where it provides one, ports of the nodes elsewhere
// (U-ING-7).
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
