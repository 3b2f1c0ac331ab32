// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/render/podtemplate"
)

// kubernetesPod returns the pod with the upstream kube-apiserver. The startup probe has no delay, because nothing else
// starts before the API server is ready.
func kubernetesPod(image string, flags []string, gracePeriod int64, environment []corev1.EnvVar) *corev1.Pod {
	pod := newPod()
	pod.Spec.TerminationGracePeriodSeconds = &gracePeriod
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	pod.Spec.Containers = []corev1.Container{{
		Name: component, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command:      slices.Concat([]string{"kube-apiserver", "--advertise-address=$(HOST_IP)"}, flags, []string{"--v=2"}),
		Ports:        []corev1.ContainerPort{{ContainerPort: port}},
		Env:          append([]corev1.EnvVar{podtemplate.FieldEnv("HOST_IP", "status.hostIP")}, environment...),
		VolumeMounts: append(readOnly(podtemplate.Mounts()), corev1.VolumeMount{Name: "audit-dir", MountPath: auditDir}),
		Resources:    podtemplate.Requests("250m", "256Mi"),
		StartupProbe: probe("/livez", 1, 15, 240), LivenessProbe: probe("/livez?exclude=etcd", 10, 15, 8), ReadinessProbe: probe("/readyz", 1, 15, 3),
	}}
	return pod
}

func readOnly(mounts []corev1.VolumeMount) []corev1.VolumeMount {
	for i := range mounts {
		mounts[i].ReadOnly = true
	}
	return mounts
}
