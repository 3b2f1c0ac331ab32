// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/topology"
)

// sharesPorts reports whether the new router starts while the old one has the ports. Of several routers two could stay
// on one node, because nothing would keep them apart.
func (h Host) sharesPorts() bool {
	return h.sharedPorts && h.hostNetwork && topology.SingleReplica(h.mode) && h.replicas() <= 1
}

// sharePorts removes the ports of the pod's containers: on the host network the API server makes every declared port a
// host port. Without the host network it would make the router unreachable.
func sharePorts(pod *corev1.PodSpec) error {
	if !pod.HostNetwork {
		return fmt.Errorf("%w: hostNetwork is false; set it before ShapeRouter", ErrSharedHostPorts)
	}
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			container := &containers[i]
			if handler := networkHandler(container); handler != "" {
				return fmt.Errorf("%w: the old or the new pod may answer the %s of container %s; use exec", ErrSharedHostPorts, handler, container.Name)
			}
			container.Ports = nil
		}
	}
	return nil
}

// networkHandler returns the name of a probe or a hook that the kubelet sends to a port of the node, or "".
func networkHandler(container *corev1.Container) string {
	hooks := ptr.Deref(container.Lifecycle, corev1.Lifecycle{})
	switch {
	case probesNetwork(container.StartupProbe):
		return "startupProbe"
	case probesNetwork(container.LivenessProbe):
		return "livenessProbe"
	case probesNetwork(container.ReadinessProbe):
		return "readinessProbe"
	case callsNetwork(hooks.PostStart):
		return "postStart hook"
	case callsNetwork(hooks.PreStop):
		return "preStop hook"
	}
	return ""
}

func probesNetwork(probe *corev1.Probe) bool {
	return probe != nil && (probe.HTTPGet != nil || probe.TCPSocket != nil || probe.GRPC != nil)
}

func callsNetwork(hook *corev1.LifecycleHandler) bool {
	return hook != nil && (hook.HTTPGet != nil || hook.TCPSocket != nil)
}
