// SPDX-License-Identifier: Apache-2.0

package operator

import (
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/topology"
)

const (
	// owningLabel is on the objects of an IngressController, podLabel on its pods. Their value is its name.
	owningLabel = "ingresscontroller.operator.openshift.io/owning-ingresscontroller"
	podLabel    = "ingresscontroller.operator.openshift.io/deployment-ingresscontroller"
)

func routerName(ingressController string) string { return "router-" + ingressController }

func owned(ingressController string) map[string]string {
	return map[string]string{owningLabel: ingressController}
}

func podLabels(ingressController string) map[string]string {
	return map[string]string{podLabel: ingressController}
}

// baseRouter returns the router without what depends on the topology. status.endpointPublishingStrategy must be set.
// The nodes are simulated, so no image is pulled.
func baseRouter(ic *operatorv1.IngressController) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ingress.RouterNamespace, Name: routerName(ic.Name), Labels: owned(ic.Name)},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: podLabels(ic.Name)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels(ic.Name)},
				Spec: corev1.PodSpec{
					HostNetwork: ic.Status.EndpointPublishingStrategy.Type == operatorv1.HostNetworkStrategyType,
					Containers: []corev1.Container{{
						Name: "router", Image: "router", Ports: ports(ic.Status.EndpointPublishingStrategy),
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
						}},
					}},
				},
			},
		},
	}
}

// ports returns the router's three ports. On the host network they are ports of the node.
func ports(publishing *operatorv1.EndpointPublishingStrategy) []corev1.ContainerPort {
	named := []corev1.ContainerPort{
		{Name: "http", ContainerPort: 80}, {Name: "https", ContainerPort: 443}, {Name: "metrics", ContainerPort: 1936},
	}
	hostNetwork := publishing.Type == operatorv1.HostNetworkStrategyType
	if own := publishing.HostNetwork; hostNetwork && own != nil {
		for i, port := range []int32{own.HTTPPort, own.HTTPSPort, own.StatsPort} {
			if port != 0 {
				named[i].ContainerPort = port
			}
		}
	}
	for i := range named {
		named[i].Protocol = corev1.ProtocolTCP
		if hostNetwork {
			named[i].HostPort = named[i].ContainerPort
		}
	}
	return named
}

// effectivePublishing returns how the router is published: by the status, which never changes, else by the spec, else
// by the platform (U-ING-7).
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
