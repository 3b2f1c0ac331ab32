package fit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// hostPorts are the ports of the node that a pod takes. Init containers count as if they ran for ever, as some do.
func hostPorts(spec *corev1.PodSpec) []corev1.ContainerPort {
	var ports []corev1.ContainerPort
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for _, container := range containers {
			for _, port := range container.Ports {
				if port.HostPort > 0 {
					ports = append(ports, corev1.ContainerPort{HostPort: port.HostPort, HostIP: port.HostIP, Protocol: port.Protocol})
				}
			}
		}
	}
	return ports
}

// clash tells whether two pods with these ports cannot share a node. Different addresses of the node count as one.
func clash(a, b []corev1.ContainerPort) bool {
	return slices.ContainsFunc(a, func(port corev1.ContainerPort) bool {
		return slices.ContainsFunc(b, func(other corev1.ContainerPort) bool {
			return port.HostPort == other.HostPort && protocol(port) == protocol(other)
		})
	})
}

func protocol(port corev1.ContainerPort) corev1.Protocol {
	if port.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return port.Protocol
}
