// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Endpoint is the address of a component's probes.
type Endpoint struct {
	Host   netip.Addr // invalid: the pod's address
	Port   int
	Scheme corev1.URIScheme
}

// Loopback returns the loopback address of the node's address family, as kubeadm's pods use it (U-REN-11).
func Loopback(node netip.Addr) netip.Addr {
	if node.Is6() {
		return netip.IPv6Loopback()
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// Get returns a probe that reads the path.
func (e Endpoint) Get(path string) *corev1.Probe {
	get := &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt(e.Port), Scheme: e.Scheme}
	if e.Host.IsValid() {
		get.Host = e.Host.String()
	}
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get}}
}

// Liveness returns a liveness probe. Liveness, Readiness and Startup have the timing of kubeadm (U-REN-11).
func (e Endpoint) Liveness(path string) *corev1.Probe { return withTiming(e.Get(path), 10, 10, 8) }

// Readiness returns a readiness probe, every second.
func (e Endpoint) Readiness(path string) *corev1.Probe { return withTiming(e.Get(path), 0, 1, 3) }

// Startup returns a startup probe with a limit of four minutes.
func (e Endpoint) Startup(path string) *corev1.Probe { return withTiming(e.Get(path), 10, 10, 24) }

func withTiming(p *corev1.Probe, delay, period, failures int32) *corev1.Probe {
	p.InitialDelaySeconds, p.PeriodSeconds, p.FailureThreshold, p.TimeoutSeconds = delay, period, failures, 15
	return p
}
