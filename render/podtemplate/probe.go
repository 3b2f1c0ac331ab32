package podtemplate

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Endpoint is where a component answers probes.
type Endpoint struct {
	Host   netip.Addr // not valid for the address of the pod
	Port   int
	Scheme corev1.URIScheme
}

// Loopback returns the loopback address of the family of the node's address, as kubeadm's pods listen and are probed (U-REN-11).
func Loopback(node netip.Addr) netip.Addr {
	if node.Is6() {
		return netip.IPv6Loopback()
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// Get returns a probe by GET.
func (e Endpoint) Get(path string) *corev1.Probe {
	get := &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt(e.Port), Scheme: e.Scheme}
	if e.Host.IsValid() {
		get.Host = e.Host.String()
	}
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get}}
}

// Liveness returns the probe that restarts the container. It, Readiness and Startup have the timing of kubeadm's static pods, so that
// the components of both are ready after the same time (U-REN-11).
func (e Endpoint) Liveness(path string) *corev1.Probe { return withTiming(e.Get(path), 10, 10, 8) }

// Readiness returns the probe that makes the pod ready within a second.
func (e Endpoint) Readiness(path string) *corev1.Probe { return withTiming(e.Get(path), 0, 1, 3) }

// Startup returns the probe that the others wait for, four minutes at most.
func (e Endpoint) Startup(path string) *corev1.Probe { return withTiming(e.Get(path), 10, 10, 24) }

func withTiming(p *corev1.Probe, delay, period, failures int32) *corev1.Probe {
	p.InitialDelaySeconds, p.PeriodSeconds, p.FailureThreshold, p.TimeoutSeconds = delay, period, failures, 15
	return p
}
