package topology

import configv1 "github.com/openshift/api/config/v1"

// ProvidesLoadBalancer says whether the platform is "cloud" in the sense of R-TOP-6: a cluster gets a load balancer for
// ingress without anybody asking for one. These are the platforms on which the default IngressController is published by a
// Service of type LoadBalancer (U-ING-7): AWS, Azure, GCP, IBMCloud and PowerVS.
//
// Every other platform is treated like None, which is the safe side: a router that is pinned although it did not need to be
// still answers where DNS points, a router that floats without a load balancer does not.
//
//   - None, External: nothing is provided.
//   - BareMetal, OpenStack, VSphere, oVirt, Nutanix, KubeVirt: at most a virtual IP that follows the router, which is no
//     balancer between replicas. They are a non-goal of the enhancement.
//   - AlibabaCloud, Libvirt, EquinixMetal: no longer, or never, installed with a load balancer for ingress.
//   - Empty and unknown: openshift/api asks components to handle a platform that they do not recognize as None.
func ProvidesLoadBalancer(platform configv1.PlatformType) bool {
	switch platform {
	case configv1.AWSPlatformType,
		configv1.AzurePlatformType,
		configv1.GCPPlatformType,
		configv1.IBMCloudPlatformType,
		configv1.PowerVSPlatformType:
		return true
	case configv1.NonePlatformType,
		configv1.ExternalPlatformType,
		configv1.BareMetalPlatformType,
		configv1.OpenStackPlatformType,
		configv1.VSpherePlatformType,
		configv1.OvirtPlatformType,
		configv1.NutanixPlatformType,
		configv1.KubevirtPlatformType,
		configv1.AlibabaCloudPlatformType,
		configv1.LibvirtPlatformType,
		configv1.EquinixMetalPlatformType:
		return false
	default:
		return false
	}
}
