// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/observe"
	"github.com/solonode/sno/render/podtemplate"
)

const kubeconfig = podtemplate.ResourceDir + "/configmaps/controller-manager-kubeconfig/kubeconfig"

func podFor(s *inputs.Settings, config map[string]any, found observe.ClientConfig) (*corev1.Pod, error) {
	flags, err := flags(config, found)
	if err != nil {
		return nil, err
	}
	proxy, err := observe.ProxyEnv(found.Observed)
	if err != nil {
		return nil, err
	}
	images := podtemplate.Images{PullSpecs: s.Images}
	var containers []corev1.Container
	if s.Profile == inputs.OpenShift {
		containers = openshiftContainers(&images, flags)
	} else {
		containers = []corev1.Container{kubernetesContainer(&images, flags, podtemplate.Loopback(s.Nodes[0].Addresses[0]))}
	}
	if err := images.Err(); err != nil {
		return nil, err
	}
	for i := range containers {
		containers[i].Env = append(containers[i].Env, proxy...)
	}
	pod := podtemplate.NewPod(namespace, component, component,
		map[string]string{"app": component, "kube-controller-manager": "true"}, podtemplate.Annotations(component))
	pod.Spec.Containers = containers
	pod.Spec.Volumes = append(pod.Spec.Volumes, podtemplate.EmptyDir("var-run-kubernetes"))
	if s.Profile == inputs.OpenShift {
		pod.Spec.Volumes = append(pod.Spec.Volumes, podtemplate.EmptyDir("tmp-dir"), podtemplate.EmptyDir("ca-trust-dir"))
	}
	return pod, nil
}

func flags(config map[string]any, found observe.ClientConfig) ([]string, error) {
	all := []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--client-ca-file=" + podtemplate.CertDir + "/configmaps/client-ca/ca-bundle.crt",
		"--requestheader-client-ca-file=" + podtemplate.CertDir + "/configmaps/aggregator-client-ca/ca-bundle.crt",
		"-v=2",
	}
	if found.Serving {
		all = append(all, "--tls-cert-file="+servingFile+".crt", "--tls-private-key-file="+servingFile+".key")
	}
	configured, err := observe.Flags(config, "extendedArguments")
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
		Resources:       podtemplate.Requests("60m", "200Mi"),
		VolumeMounts:    append(podtemplate.Mounts(), certMount),
		LivenessProbe:   endpoint.Liveness("/healthz"),
		StartupProbe:    endpoint.Startup("/healthz"),
	}
}

var certMount = corev1.VolumeMount{Name: "var-run-kubernetes", MountPath: "/var/run/kubernetes"}

// openshiftContainers returns the stock operator's containers (U-REN-19).
func openshiftContainers(images *podtemplate.Images, flags []string) []corev1.Container {
	mounts := append(podtemplate.Mounts(),
		corev1.VolumeMount{Name: "tmp-dir", MountPath: "/tmp"},
		corev1.VolumeMount{Name: "ca-trust-dir", MountPath: "/etc/pki/ca-trust/extracted/pem"},
		certMount,
	)
	operator := images.Get("cluster-kube-controller-manager-operator")
	const syncerKubeconfig = podtemplate.ResourceDir + "/configmaps/kube-controller-cert-syncer-kubeconfig/kubeconfig"

	manager := podtemplate.Shell("kube-controller-manager", images.Get("hyperkube"), script(port, `
if [ -f `+podtemplate.CertDir+`/configmaps/trusted-ca-bundle/ca-bundle.crt ]; then
  cp -f `+podtemplate.CertDir+`/configmaps/trusted-ca-bundle/ca-bundle.crt /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem
fi
exec hyperkube kube-controller-manager --openshift-config=`+podtemplate.ResourceDir+`/configmaps/config/config.yaml `+
		podtemplate.Quote(flags)))
	manager.Resources = podtemplate.Requests("60m", "200Mi")
	podtemplate.SetHealthzProbes(&manager, port)

	images.Get("tools") // For the recycler.

	policy := podtemplate.Shell("cluster-policy-controller", images.Get("cluster-policy-controller"), script(policyPort, `
exec cluster-policy-controller start --config=`+podtemplate.ResourceDir+`/configmaps/cluster-policy-controller-config/config.yaml \
  --kubeconfig=`+kubeconfig+` --namespace=${POD_NAMESPACE} -v=2`))
	policy.Env = []corev1.EnvVar{podtemplate.FieldEnv("POD_NAME", "metadata.name"), podtemplate.FieldEnv("POD_NAMESPACE", "metadata.namespace")}
	policy.Resources = podtemplate.Requests("10m", "200Mi")
	podtemplate.SetHealthzProbes(&policy, policyPort)
	for _, p := range []*corev1.Probe{policy.StartupProbe, policy.LivenessProbe, policy.ReadinessProbe} {
		p.HTTPGet.Host = "localhost"
	}

	syncer := podtemplate.CertSyncer(component, operator, "cluster-kube-controller-manager-operator", syncerKubeconfig)

	recovery := podtemplate.Shell("kube-controller-manager-recovery-controller", operator, script(recoverPort, fmt.Sprintf(`
exec cluster-kube-controller-manager-operator cert-recovery-controller --kubeconfig=%s --namespace=${POD_NAMESPACE} --listen=0.0.0.0:%d -v=2`,
		syncerKubeconfig, recoverPort)))
	recovery.Env = []corev1.EnvVar{podtemplate.FieldEnv("POD_NAMESPACE", "metadata.namespace")}
	recovery.Resources = podtemplate.Requests("5m", "50Mi")

	containers := []corev1.Container{manager, policy, syncer, recovery}
	for i := range containers {
		containers[i].VolumeMounts = mounts
		containers[i].SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: ptr.To(true)}
	}
	// kube-controller-manager writes elsewhere too.
	containers[0].VolumeMounts, containers[0].SecurityContext = podtemplate.Mounts(), nil
	return containers
}

// script returns the commands, preceded by a wait for the port of the previous revision's pod.
func script(port int, commands string) string {
	return podtemplate.WaitForPort(port) + strings.TrimPrefix(commands, "\n")
}

// recycler returns the pod with which kube-controller-manager empties released volumes, in openshift-infra.
func recycler(s *inputs.Settings) *corev1.Pod {
	root, deadline, readOnly := int64(0), int64(60), true
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "openshift-infra", Name: "recycler-pod",
			Annotations: map[string]string{"target.workload.openshift.io/management": `{"effect": "PreferredDuringScheduling"}`},
		},
		Spec: corev1.PodSpec{
			ActiveDeadlineSeconds: &deadline,
			RestartPolicy:         corev1.RestartPolicyNever,
			ServiceAccountName:    "pv-recycler-controller",
			PriorityClassName:     "openshift-user-critical",
			Containers: []corev1.Container{{
				Name:    "recycler-container",
				Image:   s.Images["tools"],
				Command: []string{"/bin/bash", "-c", `rm -rf /scrub/..?* /scrub/.[!.]* /scrub/* && [ -z "$(ls -A /scrub)" ]`},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "vol", MountPath: "/scrub"},
				},
				Resources:       podtemplate.Requests("10m", "50Mi"),
				SecurityContext: &corev1.SecurityContext{RunAsUser: &root, ReadOnlyRootFilesystem: &readOnly},
			}},
			Volumes: []corev1.Volume{{Name: "vol"}},
		},
	}
}
