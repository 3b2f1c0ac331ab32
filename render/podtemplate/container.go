// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Annotations returns the annotations of the operators' pods.
func Annotations(container string) map[string]string {
	return map[string]string{
		"kubectl.kubernetes.io/default-container": container,
		"target.workload.openshift.io/management": `{"effect": "PreferredDuringScheduling"}`,
	}
}

// Container returns a container with the common fields of the operators' containers.
func Container(name, image string) corev1.Container {
	return corev1.Container{
		Name: name, Image: image,
		ImagePullPolicy:          corev1.PullIfNotPresent,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// Kubeadm returns the container of profile kubernetes without probes, whose port and files are those of kubeadm's pods
// (U-REN-11).
func Kubeadm(name, image string, flags []string, port int32) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command:      append([]string{name}, flags...),
		Ports:        []corev1.ContainerPort{{ContainerPort: port}},
		VolumeMounts: Mounts(),
	}
}

// Shell returns a container that runs the script with bash and exits at the first failing command.
func Shell(name, image, script string) corev1.Container {
	c := Container(name, image)
	c.Command = []string{"/bin/bash", "-euxo", "pipefail", "-c"}
	c.Args = []string{script}
	return c
}

// WaitForPort returns a command that waits until the pod of the previous revision has released the port.
func WaitForPort(port int) string {
	return fmt.Sprintf("timeout 3m /bin/bash -exuo pipefail -c 'while [ -n \"$(ss -Htanop \\( sport = %d \\))\" ]; do sleep 1; done'\n", port)
}

// Quote returns the arguments as one line for a shell.
func Quote(arguments []string) string {
	quoted := make([]string, len(arguments))
	for i, a := range arguments {
		quoted[i] = a
		if strings.ContainsAny(a, " \t\n*?[]{}()<>|&;$`\"'\\~#!") {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// SetHealthzProbes gives the container the probes of the operators: /healthz on the port, over TLS.
func SetHealthzProbes(c *corev1.Container, port int) {
	endpoint := Endpoint{Port: port, Scheme: corev1.URISchemeHTTPS}
	probe := func(delay, timeout int32) *corev1.Probe {
		p := endpoint.Get("healthz")
		p.InitialDelaySeconds, p.TimeoutSeconds = delay, timeout
		return p
	}
	c.Ports = []corev1.ContainerPort{{ContainerPort: int32(port)}}
	c.StartupProbe, c.LivenessProbe, c.ReadinessProbe = probe(0, 3), probe(45, 10), probe(10, 10)
}

// CertSyncer returns the container that keeps the files outside of revisions like the objects in the API.
func CertSyncer(component, image, command, kubeconfig string) corev1.Container {
	c := Container(component+"-cert-syncer", image)
	c.Env = []corev1.EnvVar{FieldEnv("POD_NAME", "metadata.name"), FieldEnv("POD_NAMESPACE", "metadata.namespace")}
	c.Command = []string{command, "cert-syncer"}
	c.Args = []string{"--kubeconfig=" + kubeconfig, "--namespace=$(POD_NAMESPACE)", "--destination-dir=" + CertDir}
	c.Resources = Requests("5m", "50Mi")
	c.VolumeMounts = Mounts()
	return c
}

// RecoveryController returns the container that renews certificates, by the API server on the same node.
func RecoveryController(component, image, command, kubeconfig string, port int) corev1.Container {
	c := Shell(component+"-recovery-controller", image, WaitForPort(port)+fmt.Sprintf(
		"exec %s cert-recovery-controller --kubeconfig=%s --namespace=${POD_NAMESPACE} --listen=0.0.0.0:%d -v=2", command, kubeconfig, port))
	c.Env = []corev1.EnvVar{FieldEnv("POD_NAMESPACE", "metadata.namespace")}
	c.Resources = Requests("5m", "50Mi")
	c.VolumeMounts = Mounts()
	return c
}

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
