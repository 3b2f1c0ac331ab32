// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/testcluster/standin"
	"github.com/solonode/sno/topology"
)

const (
	// owningLabel is on the objects of an IngressController, podLabel on its pods. Their value is its name.
	owningLabel = "ingresscontroller.operator.openshift.io/owning-ingresscontroller"
	podLabel    = "ingresscontroller.operator.openshift.io/deployment-ingresscontroller"
	// hashLabel distinguishes pods of different revisions.
	hashLabel = "ingresscontroller.operator.openshift.io/hash"

	containerName = "router"
	// image is never pulled: nodes are simulated, or have it. Without a tag a kubelet would pull it each time.
	image = "router:1"

	// statsVariable has the address of a router's health and metrics, instead of its last port.
	statsVariable = "STATS_BIND"
	statsSocket   = "unix@/etc/router/stats.sock"

	// Values of every router of the stock operator, in any topology (U-ING-9).
	stockMinReadySeconds    = 30
	stockGracePeriodSeconds = 3600
	priorityClass           = "system-cluster-critical"
)

func managementWorkload() map[string]string {
	return map[string]string{"target.workload.openshift.io/management": `{"effect": "PreferredDuringScheduling"}`}
}

func routerName(ingressController string) string { return "router-" + ingressController }

// baseRouter returns the router without what depends on the topology. It starts from the live one, or from nil, and
// keeps other fields such as defaults of the API server, so that an unchanged router is equal.
func (o Options) baseRouter(live *appsv1.Deployment, ic *operatorv1.IngressController) *appsv1.Deployment {
	publishing := ic.Status.EndpointPublishingStrategy
	router := &appsv1.Deployment{}
	if live != nil {
		live.DeepCopyInto(router)
	}
	router.Namespace, router.Name = ingress.RouterNamespace, routerName(ic.Name)
	router.Labels = standin.With(router.Labels, map[string]string{owningLabel: ic.Name})
	if router.Spec.Selector == nil {
		router.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{podLabel: ic.Name}}
	}
	router.Spec.MinReadySeconds = int32(o.MinReadySeconds) //nolint:gosec // a number of seconds
	template := &router.Spec.Template
	template.Annotations = standin.With(template.Annotations, managementWorkload())
	template.Labels = standin.With(template.Labels, map[string]string{podLabel: ic.Name})

	pod := &template.Spec
	container := corev1.Container{}
	if i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == containerName }); i >= 0 {
		container = pod.Containers[i]
	}
	container.Name, container.Image, container.ReadinessProbe, container.Env = containerName, image, nil, nil
	container.Ports = ports(publishing)
	container.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
	}}
	pod.InitContainers, pod.Containers = nil, []corev1.Container{container}
	pod.HostNetwork = publishing.Type == operatorv1.HostNetworkStrategyType
	pod.PriorityClassName, pod.TerminationGracePeriodSeconds = priorityClass, ptr.To[int64](stockGracePeriodSeconds)
	pod.NodeSelector, pod.Tolerations, pod.Affinity = nil, nil, nil
	router.Spec.Strategy = appsv1.DeploymentStrategy{} // or one of another topology with the same effect would stay
	pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector:  &metav1.LabelSelector{MatchLabels: maps.Clone(router.Spec.Selector.MatchLabels)},
		MatchLabelKeys: []string{appsv1.DefaultDeploymentUniqueLabelKey},
	}}
	if o.RouterImage != "" {
		serve(router, o.RouterImage, o.SharedHostPorts)
	}
	return router
}

// seal labels the pods with a hash of the fields that the operator sets, without defaults of the API server. It must
// come last: a moved router would keep its hash if the rules of the topology changed the pods later.
func seal(router *appsv1.Deployment) error {
	pod := router.Spec.Template.Spec
	encoded, err := json.Marshal(corev1.PodSpec{
		NodeSelector: pod.NodeSelector, Tolerations: pod.Tolerations, Affinity: pod.Affinity,
		TopologySpreadConstraints: pod.TopologySpreadConstraints, HostNetwork: pod.HostNetwork,
		Containers: []corev1.Container{{Image: pod.Containers[0].Image, Ports: pod.Containers[0].Ports, Env: pod.Containers[0].Env}},
	})
	if err != nil {
		return fmt.Errorf("hashing the pods of %s: %w", router.Name, err)
	}
	sum := sha256.Sum256(encoded)
	router.Spec.Template.Labels = standin.With(router.Spec.Template.Labels, map[string]string{hashLabel: hex.EncodeToString(sum[:])[:10]})
	return nil
}

// serve sets an image of a router and its readiness probe, with the API server's defaults, so that the live router is
// equal. With sharedPorts health and metrics are on a socket in the pod: the old router may answer on every port.
func serve(router *appsv1.Deployment, image string, sharedPorts bool) {
	container := &router.Spec.Template.Spec.Containers[0]
	container.Image = image
	container.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
	if sharedPorts {
		container.Env = []corev1.EnvVar{{Name: statsVariable, Value: statsSocket}}
		container.ReadinessProbe.Exec = &corev1.ExecAction{Command: readyCommand()}
		return
	}
	container.ReadinessProbe.HTTPGet = &corev1.HTTPGetAction{
		Path: "/healthz/ready", Scheme: corev1.URISchemeHTTP, Port: intstr.FromInt32(container.Ports[len(container.Ports)-1].ContainerPort),
	}
}

// readyCommand is a program of the image that asks statsSocket.
func readyCommand() []string { return []string{"/bin/bash", "/etc/router/ready"} }

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
