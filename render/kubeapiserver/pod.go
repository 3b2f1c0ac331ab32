// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/render/podtemplate"
)

// setupScript waits until the previous kube-apiserver has released the port. %[1]d is the grace period in seconds.
const setupScript = `chmod 0700 /var/log/kube-apiserver
touch /var/log/kube-apiserver/audit.log
chmod 0600 /var/log/kube-apiserver/*
exec {LOCK}>/var/log/kube-apiserver/.lock
if ! flock --verbose -w %[1]d "${LOCK}"; then
  echo "$(date -Iseconds -u) the kube-apiserver before this one still runs after %[1]d s" >>/var/log/kube-apiserver/lock.log
  for (( tries = 0; tries < 10; tries++ )); do
    [ -n "$(ss -Htan state listening '( sport = 6443 or sport = 6080 )')" ] || break
    sleep 1
  done
  if (( tries == 10 )); then
    echo "ports 6443 and 6080 are still in use"
    exit 1
  fi
  # Requests of the other one may take a minute after it has stopped listening.
  sleep 65
fi
flock -u "${LOCK}"
`

// serverScript holds the lock while kube-apiserver runs. %[1]d is the grace period.
const serverScript = `exec {LOCK}>/var/log/kube-apiserver/.lock
if ! flock --verbose -w 30 "${LOCK}"; then
  echo "the lock was not released by the container setup"
  exit 1
fi
bundle=/etc/kubernetes/static-pod-certs/configmaps/trusted-ca-bundle/ca-bundle.crt
if [ -f "${bundle}" ]; then
  cp -f "${bundle}" /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem
fi
exec watch-termination --termination-touch-file=/var/log/kube-apiserver/.terminating \
  --termination-log-file=/var/log/kube-apiserver/termination.log --graceful-termination-duration=%[1]ds \
  --kubeconfig=/etc/kubernetes/static-pod-resources/configmaps/kube-apiserver-cert-syncer-kubeconfig/kubeconfig -- \
  hyperkube kube-apiserver --openshift-config=/etc/kubernetes/static-pod-resources/configmaps/config/config.yaml \
  --advertise-address="${HOST_IP}" -v=2 --permit-address-sharing
`

// setupMargin is the time of container setup after the grace period: for ports, requests and the container engine.
const setupMargin = 10 + 65 + 10

const checkEndpointsPort = 17697

// openShiftPod returns the stock operator's pod, with client certificates for two sidecars. release may be empty.
func openShiftPod(image, operatorImage, release string, gracePeriod int64, environment []corev1.EnvVar) *corev1.Pod {
	pod := newPod()
	pod.Annotations = podtemplate.Annotations(component)
	pod.Spec.TerminationGracePeriodSeconds = &gracePeriod
	pod.Spec.Volumes = append(pod.Spec.Volumes, podtemplate.EmptyDir("tmp-dir"), podtemplate.EmptyDir("ca-bundle-dir"))
	tmp := corev1.VolumeMount{Name: "tmp-dir", MountPath: "/tmp"}
	mounts := append(podtemplate.Mounts(), tmp)
	audit := corev1.VolumeMount{Name: "audit-dir", MountPath: auditDir}
	privileged := &corev1.SecurityContext{Privileged: ptr.To(true), ReadOnlyRootFilesystem: ptr.To(true)}
	name := podtemplate.FieldEnv("POD_NAME", "metadata.name")
	namespace := podtemplate.FieldEnv("POD_NAMESPACE", "metadata.namespace")
	syncer := "--kubeconfig=" + revisioned("configmaps", "kube-apiserver-cert-syncer-kubeconfig", "kubeconfig")

	sidecar := func(name, verb string, args ...string) corev1.Container {
		return corev1.Container{
			Name: name, Image: operatorImage, ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Command: []string{"cluster-kube-apiserver-operator", verb}, Args: args, Resources: podtemplate.Requests("5m", "50Mi"),
			VolumeMounts: mounts, SecurityContext: &corev1.SecurityContext{ReadOnlyRootFilesystem: ptr.To(true)},
		}
	}
	server := corev1.Container{
		Name: component, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		Command: []string{"/bin/bash", "-ec"}, Args: []string{fmt.Sprintf(serverScript, gracePeriod)},
		Ports: []corev1.ContainerPort{{ContainerPort: port}},
		Env: []corev1.EnvVar{
			name, namespace,
			// A variable named REVISION would be replaced.
			{Name: "STATIC_POD_VERSION", Value: podtemplate.Revision},
			podtemplate.FieldEnv("HOST_IP", "status.hostIP"),
			{Name: "GOGC", Value: "100"},
		},
		VolumeMounts: append(podtemplate.Mounts(), audit, tmp, corev1.VolumeMount{Name: "ca-bundle-dir", MountPath: "/etc/pki/ca-trust/extracted/pem"}), SecurityContext: privileged, Resources: podtemplate.Requests("265m", "1Gi"),
		StartupProbe: probe("livez", 5, 10, 30), LivenessProbe: probe("livez?exclude=etcd", 10, 10, 3), ReadinessProbe: probe("readyz", 5, 10, 3),
	}
	certSyncer := sidecar("kube-apiserver-cert-syncer", "cert-syncer", syncer, "--namespace=$(POD_NAMESPACE)", "--destination-dir="+podtemplate.CertDir)
	certSyncer.Env = []corev1.EnvVar{name, namespace}

	regeneration := sidecar("kube-apiserver-cert-regeneration-controller", "cert-regeneration-controller", syncer, "--namespace=$(POD_NAMESPACE)", "-v=2")
	regeneration.Env, regeneration.VolumeMounts = []corev1.EnvVar{namespace}, []corev1.VolumeMount{mounts[0], tmp}
	if release != "" {
		regeneration.Env = append(regeneration.Env, corev1.EnvVar{Name: "OPERATOR_IMAGE_VERSION", Value: release})
	}

	readyz := sidecar("kube-apiserver-insecure-readyz", "insecure-readyz", "--insecure-port=6080", "--delegate-url="+localURL+"/readyz")
	readyz.VolumeMounts = []corev1.VolumeMount{tmp}
	readyz.Ports = []corev1.ContainerPort{{ContainerPort: 6080}}

	checkEndpoints := sidecar("kube-apiserver-check-endpoints", "check-endpoints",
		"--config", revisioned("configmaps", "config", "config.yaml"), // for the TLS settings of its port
		"--kubeconfig", unrevisioned("configmaps", "check-endpoints-kubeconfig", "kubeconfig"),
		"--listen", "0.0.0.0:"+strconv.Itoa(checkEndpointsPort), "--namespace", "$(POD_NAMESPACE)", "--v", "2")
	checkEndpoints.Env = []corev1.EnvVar{name, namespace}
	checkEndpoints.Ports = []corev1.ContainerPort{{Name: "check-endpoints", HostPort: checkEndpointsPort, ContainerPort: checkEndpointsPort, Protocol: corev1.ProtocolTCP}}
	checkEndpoints.Resources = podtemplate.Requests("10m", "50Mi")
	healthz := podtemplate.Endpoint{Port: checkEndpointsPort, Scheme: corev1.URISchemeHTTPS}
	for _, p := range []**corev1.Probe{&checkEndpoints.LivenessProbe, &checkEndpoints.ReadinessProbe} {
		*p = healthz.Get("healthz")
		(*p).InitialDelaySeconds, (*p).TimeoutSeconds = 10, 10
	}

	pod.Spec.InitContainers = []corev1.Container{{
		Name: "setup", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		Command: []string{"/usr/bin/timeout", strconv.FormatInt(gracePeriod+setupMargin, 10), "/bin/bash", "-ec"},
		Args:    []string{fmt.Sprintf(setupScript, gracePeriod)}, VolumeMounts: []corev1.VolumeMount{audit},
		SecurityContext: privileged, Resources: podtemplate.Requests("5m", "50Mi"),
	}}
	pod.Spec.Containers = []corev1.Container{server, certSyncer, regeneration, readyz, checkEndpoints}
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Env = append(pod.Spec.Containers[i].Env, environment...)
	}
	return pod
}

// newPod returns the common part of both profiles' pods. The labels are the same, so that clients find either.
func newPod() *corev1.Pod {
	pod := podtemplate.NewPod(Namespace, component, component, map[string]string{"app": "openshift-kube-apiserver", "apiserver": "true"}, nil)
	audit := podtemplate.HostPath("audit-dir", auditDir)
	audit.HostPath.Type = ptr.To(corev1.HostPathDirectoryOrCreate)
	pod.Spec.Volumes = append(pod.Spec.Volumes, audit)
	return pod
}

func probe(path string, period, timeout, failures int32) *corev1.Probe {
	p := podtemplate.Endpoint{Port: port, Scheme: corev1.URISchemeHTTPS}.Get(path)
	p.PeriodSeconds, p.TimeoutSeconds, p.FailureThreshold, p.SuccessThreshold = period, timeout, failures, 1
	return p
}

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
