package topology

import configv1 "github.com/openshift/api/config/v1"

// ProvidesLoadBalancer reports whether the platform is "cloud" in the sense of R-TOP-6: the default IngressController is published by
// a Service of type LoadBalancer (U-ING-7). Every other platform is treated like None: at most it has a virtual IP that follows the
// router, and a router that is pinned without need still answers where DNS points.
func ProvidesLoadBalancer(platform configv1.PlatformType) bool {
	switch platform { //nolint:exhaustive // openshift/api asks to handle a platform that is not recognized as None
	case configv1.AWSPlatformType, configv1.AzurePlatformType, configv1.GCPPlatformType, configv1.IBMCloudPlatformType, configv1.PowerVSPlatformType:
		return true
	}
	return false
}
