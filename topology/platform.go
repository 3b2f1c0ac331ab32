// SPDX-License-Identifier: Apache-2.0

package topology

import configv1 "github.com/openshift/api/config/v1"

// ProvidesLoadBalancer reports whether the platform is a cloud as in R-TOP-6, with a Service of type LoadBalancer
// (U-ING-7). Others are treated like None: pinning a router behind a virtual IP is harmless.
func ProvidesLoadBalancer(platform configv1.PlatformType) bool {
	switch platform { //nolint:exhaustive // openshift/api asks to handle a platform that is not recognized as None
	case configv1.AWSPlatformType, configv1.AzurePlatformType, configv1.GCPPlatformType, configv1.IBMCloudPlatformType, configv1.PowerVSPlatformType:
		return true
	}
	return false
}
