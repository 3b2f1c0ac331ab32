// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/observe"
	"github.com/solonode/sno/render/podtemplate"
)

// certDir has the self-signed certificate of profile openshift.
const certDir = "/var/run/kubernetes"

const kubeconfig = podtemplate.ResourceDir + "/configmaps/scheduler-kubeconfig/kubeconfig"

func podFor(s *inputs.Settings, found observe.ClientConfig) (*corev1.Pod, error) {
	flags, err := flags(s, found)
	if err != nil {
		return nil, err
	}
	pod := podtemplate.NewPod(namespace, podName, component,
		map[string]string{"app": podName, "scheduler": "true"}, podtemplate.Annotations(component))
	if s.Profile == inputs.OpenShift {
		pod.Spec.InitContainers, pod.Spec.Containers = openshiftContainers(s.Images, flags)
		pod.Spec.Volumes = append(pod.Spec.Volumes, podtemplate.EmptyDir("tmp-dir"), podtemplate.EmptyDir("var-run-kubernetes"))
	} else {
		pod.Spec.Containers = []corev1.Container{kubernetesContainer(s, flags)}
	}
	return pod, nil
}

// flags returns the command line of both profiles. In profile kubernetes the self-signed certificate stays in memory.
func flags(s *inputs.Settings, found observe.ClientConfig) ([]string, error) {
	all := []string{
		"--config=" + podtemplate.ResourceDir + "/configmaps/config/config.yaml",
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"-v=2",
	}
	if s.Profile == inputs.OpenShift {
		all = append(all, "--cert-dir="+certDir)
	}
	configured, err := found.Flags(found.Observed)
	return append(all, configured...), err
}

// kubernetesContainer returns the container of profile kubernetes with kubeadm's probes (U-REN-11).
func kubernetesContainer(s *inputs.Settings, flags []string) corev1.Container {
	endpoint := podtemplate.Endpoint{Host: podtemplate.Loopback(s.Nodes[0].Addresses[0]), Port: port, Scheme: corev1.URISchemeHTTPS}
	c := podtemplate.Kubeadm(component, s.Images[component], flags, port)
	c.Resources = podtemplate.Requests("15m", "50Mi")
	c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = endpoint.Liveness("/livez"), endpoint.Readiness("/readyz"), endpoint.Startup("/livez")
	return c
}

// openshiftContainers returns the stock operator's containers (U-REN-21).
func openshiftContainers(images map[string]string, flags []string) (initial, containers []corev1.Container) {
	hyperkube := images["hyperkube"]
	const operator, syncerKubeconfig = "cluster-kube-scheduler-operator", podtemplate.ResourceDir + "/configmaps/kube-scheduler-cert-syncer-kubeconfig/kubeconfig"

	wait := podtemplate.Container("wait-for-host-port", hyperkube)
	wait.Command = []string{"/usr/bin/timeout", "30", "/bin/bash", "-c"}
	wait.Args = []string{fmt.Sprintf("while [ -n \"$(ss -Htan '( sport = %d )')\" ]; do sleep 1; done\n", port)}
	wait.Resources = podtemplate.Requests("15m", "50Mi")

	scheduler := podtemplate.Container(component, hyperkube)
	scheduler.Command = []string{"hyperkube", "kube-scheduler"}
	scheduler.Args = flags
	scheduler.Resources = podtemplate.Requests("15m", "50Mi")
	scheduler.Ports = []corev1.ContainerPort{{ContainerPort: port}}
	scheduler.VolumeMounts = podtemplate.Mounts()
	endpoint := podtemplate.Endpoint{Port: port, Scheme: corev1.URISchemeHTTPS}
	scheduler.LivenessProbe, scheduler.ReadinessProbe = endpoint.Get("healthz"), endpoint.Get("healthz")
	scheduler.LivenessProbe.InitialDelaySeconds, scheduler.ReadinessProbe.InitialDelaySeconds = 45, 45

	syncer := podtemplate.CertSyncer(component, images[operator], operator, syncerKubeconfig)
	recovery := podtemplate.RecoveryController(component, images[operator], operator, syncerKubeconfig, recoverPort)

	containers = []corev1.Container{scheduler, syncer, recovery}
	for i := range containers {
		containers[i].VolumeMounts = append(containers[i].VolumeMounts, corev1.VolumeMount{Name: "tmp-dir", MountPath: "/tmp"})
		containers[i].SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: ptr.To(true)}
	}
	containers[0].VolumeMounts = append(containers[0].VolumeMounts, corev1.VolumeMount{Name: "var-run-kubernetes", MountPath: certDir})
	return []corev1.Container{wait}, containers
}
