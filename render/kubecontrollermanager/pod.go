// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
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
	pod := podtemplate.NewPod(namespace, component, component,
		map[string]string{"app": component, "kube-controller-manager": "true"}, podtemplate.Annotations(component))
	pod.Spec.Volumes = append(pod.Spec.Volumes, podtemplate.EmptyDir("var-run-kubernetes"))
	if s.Profile == inputs.OpenShift {
		pod.Spec.Containers = openshiftContainers(s.Images, flags)
		pod.Spec.Volumes = append(pod.Spec.Volumes, podtemplate.EmptyDir("tmp-dir"), podtemplate.EmptyDir("ca-trust-dir"))
	} else {
		pod.Spec.Containers = []corev1.Container{kubernetesContainer(s, flags)}
	}
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Env = append(pod.Spec.Containers[i].Env, proxy...)
	}
	return pod, nil
}

func flags(config map[string]any, found observe.ClientConfig) ([]string, error) {
	configured, err := found.Flags(config)
	return append([]string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--client-ca-file=" + podtemplate.CertDir + "/configmaps/client-ca/ca-bundle.crt",
		"--requestheader-client-ca-file=" + podtemplate.CertDir + "/configmaps/aggregator-client-ca/ca-bundle.crt",
		"-v=2",
	}, configured...), err
}

// kubernetesContainer returns the container of profile kubernetes with kubeadm's probes (U-REN-11).
func kubernetesContainer(s *inputs.Settings, flags []string) corev1.Container {
	endpoint := podtemplate.Endpoint{Host: podtemplate.Loopback(s.Nodes[0].Addresses[0]), Port: port, Scheme: corev1.URISchemeHTTPS}
	c := podtemplate.Kubeadm(component, s.Images[component], flags, port)
	c.Resources = podtemplate.Requests("60m", "200Mi")
	c.VolumeMounts = append(c.VolumeMounts, certMount)
	c.LivenessProbe, c.StartupProbe = endpoint.Liveness("/healthz"), endpoint.Startup("/healthz")
	return c
}

var certMount = corev1.VolumeMount{Name: "var-run-kubernetes", MountPath: "/var/run/kubernetes"}

// openshiftContainers returns the stock operator's containers (U-REN-19).
func openshiftContainers(images map[string]string, flags []string) []corev1.Container {
	mounts := append(podtemplate.Mounts(),
		corev1.VolumeMount{Name: "tmp-dir", MountPath: "/tmp"},
		corev1.VolumeMount{Name: "ca-trust-dir", MountPath: "/etc/pki/ca-trust/extracted/pem"},
		certMount,
	)
	const operator, syncerKubeconfig = "cluster-kube-controller-manager-operator", podtemplate.ResourceDir + "/configmaps/kube-controller-cert-syncer-kubeconfig/kubeconfig"

	manager := podtemplate.Shell("kube-controller-manager", images["hyperkube"], script(port, `
if [ -f `+podtemplate.CertDir+`/configmaps/trusted-ca-bundle/ca-bundle.crt ]; then
  cp -f `+podtemplate.CertDir+`/configmaps/trusted-ca-bundle/ca-bundle.crt /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem
fi
exec hyperkube kube-controller-manager --openshift-config=`+podtemplate.ResourceDir+`/configmaps/config/config.yaml `+
		podtemplate.Quote(flags)))
	manager.Resources = podtemplate.Requests("60m", "200Mi")
	podtemplate.SetHealthzProbes(&manager, port)

	policy := podtemplate.Shell("cluster-policy-controller", images["cluster-policy-controller"], script(policyPort, `
exec cluster-policy-controller start --config=`+podtemplate.ResourceDir+`/configmaps/cluster-policy-controller-config/config.yaml \
  --kubeconfig=`+kubeconfig+` --namespace=${POD_NAMESPACE} -v=2`))
	policy.Env = []corev1.EnvVar{podtemplate.FieldEnv("POD_NAME", "metadata.name"), podtemplate.FieldEnv("POD_NAMESPACE", "metadata.namespace")}
	policy.Resources = podtemplate.Requests("10m", "200Mi")
	podtemplate.SetHealthzProbes(&policy, policyPort)
	for _, p := range []*corev1.Probe{policy.StartupProbe, policy.LivenessProbe, policy.ReadinessProbe} {
		p.HTTPGet.Host = "localhost"
	}

	syncer := podtemplate.CertSyncer(component, images[operator], operator, syncerKubeconfig)
	recovery := podtemplate.RecoveryController(component, images[operator], operator, syncerKubeconfig, recoverPort)

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
