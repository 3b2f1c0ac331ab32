// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"net/netip"

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
	images := podtemplate.Images{PullSpecs: s.Images}
	if s.Profile == inputs.OpenShift {
		pod.Spec.InitContainers, pod.Spec.Containers = openshiftContainers(&images, flags)
		pod.Spec.Volumes = append(pod.Spec.Volumes, podtemplate.EmptyDir("tmp-dir"), podtemplate.EmptyDir("var-run-kubernetes"))
	} else {
		pod.Spec.Containers = []corev1.Container{kubernetesContainer(&images, flags, podtemplate.Loopback(s.Nodes[0].Addresses[0]))}
	}
	return pod, images.Err()
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
	if found.Serving {
		const file = podtemplate.ResourceDir + "/secrets/serving-cert/tls"
		all = append(all, "--tls-cert-file="+file+".crt", "--tls-private-key-file="+file+".key")
	}
	configured, err := observe.Flags(found.Observed, "extendedArguments")
	if err != nil {
		return nil, err
	}
	tls, err := observe.TLSFlags(found.Observed)
	if err != nil {
		return nil, err
	}
	return append(append(all, configured...), tls...), nil
}

// kubernetesContainer returns the container of profile kubernetes with kubeadm's probes (U-REN-11).
func kubernetesContainer(images *podtemplate.Images, flags []string, host netip.Addr) corev1.Container {
	endpoint := podtemplate.Endpoint{Host: host, Port: port, Scheme: corev1.URISchemeHTTPS}
	return corev1.Container{
		Name:            component,
		Image:           images.Get(component),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         append([]string{component}, flags...),
		Ports:           []corev1.ContainerPort{{ContainerPort: port}},
		Resources:       podtemplate.Requests("15m", "50Mi"),
		VolumeMounts:    podtemplate.Mounts(),
		LivenessProbe:   endpoint.Liveness("/livez"),
		ReadinessProbe:  endpoint.Readiness("/readyz"),
		StartupProbe:    endpoint.Startup("/livez"),
	}
}

// openshiftContainers returns the stock operator's containers (U-REN-21).
func openshiftContainers(images *podtemplate.Images, flags []string) (initial, containers []corev1.Container) {
	hyperkube, operator := images.Get("hyperkube"), images.Get("cluster-kube-scheduler-operator")
	const syncerKubeconfig = podtemplate.ResourceDir + "/configmaps/kube-scheduler-cert-syncer-kubeconfig/kubeconfig"

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

	syncer := podtemplate.CertSyncer(component, operator, "cluster-kube-scheduler-operator", syncerKubeconfig)

	recovery := podtemplate.Shell("kube-scheduler-recovery-controller", operator, podtemplate.WaitForPort(recoverPort)+fmt.Sprintf(
		"exec cluster-kube-scheduler-operator cert-recovery-controller --kubeconfig=%s --namespace=${POD_NAMESPACE} --listen=0.0.0.0:%d -v=2",
		syncerKubeconfig, recoverPort))
	recovery.Env = []corev1.EnvVar{podtemplate.FieldEnv("POD_NAMESPACE", "metadata.namespace")}
	recovery.Resources = podtemplate.Requests("5m", "50Mi")
	recovery.VolumeMounts = podtemplate.Mounts()

	containers = []corev1.Container{scheduler, syncer, recovery}
	for i := range containers {
		containers[i].VolumeMounts = append(containers[i].VolumeMounts, corev1.VolumeMount{Name: "tmp-dir", MountPath: "/tmp"})
		containers[i].SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: ptr.To(true)}
	}
	containers[0].VolumeMounts = append(containers[0].VolumeMounts, corev1.VolumeMount{Name: "var-run-kubernetes", MountPath: certDir})
	return []corev1.Container{wait}, containers
}
