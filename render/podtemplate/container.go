// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
