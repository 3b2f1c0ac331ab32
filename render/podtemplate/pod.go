// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

const (
	// ResourceDir has the files of the revision, as a path in the containers.
	ResourceDir = "/etc/kubernetes/static-pod-resources"
	// CertDir has the files without a revision, as a path in the containers.
	CertDir = "/etc/kubernetes/static-pod-certs"
	hostDir = "/etc/kubernetes/static-pod-resources"
)

// Revision is the placeholder for the number of the revision.
const Revision = "REVISION"

// priority is the value of class system-node-critical. A kubelet that shuts down reads it from static pods as they are
// written, and ends pods without a value together with workloads (U-REN-41).
const priority = 2000001000

// NewPod returns a pod without containers: on the host's network, never evicted, with two folders of files named by
// files.
func NewPod(namespace, name, files string, labels, annotations map[string]string) *corev1.Pod {
	if labels == nil {
		labels = map[string]string{}
	}
	labels["revision"] = Revision
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: annotations},
		Spec: corev1.PodSpec{
			HostNetwork:       true,
			PriorityClassName: "system-node-critical",
			Priority:          ptr.To[int32](priority),
			Tolerations:       []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Volumes: []corev1.Volume{
				HostPath("resource-dir", fmt.Sprintf("%s/%s-pod-%s", hostDir, files, Revision)),
				HostPath("cert-dir", fmt.Sprintf("%s/%s-certs", hostDir, files)),
			},
		},
	}
}

// HostPath returns a volume of a path on the host.
func HostPath(name, path string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}
}

// EmptyDir returns an empty volume.
func EmptyDir(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

// Mounts returns the mounts of the two folders of files.
func Mounts() []corev1.VolumeMount {
	return []corev1.VolumeMount{{Name: "resource-dir", MountPath: ResourceDir}, {Name: "cert-dir", MountPath: CertDir}}
}

// Requests returns requests without limits.
func Requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}
}

// FieldEnv returns an environment variable with a field of the pod.
func FieldEnv(name, field string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}}}
}

// YAML returns a ConfigMap with a file in YAML.
func YAML(namespace, name, file string, content any) (*corev1.ConfigMap, error) {
	text, err := yaml.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("write configmap %s/%s: %w", namespace, name, err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{file: string(text)},
	}, nil
}

// ConfigMap returns the pod's ConfigMap, which installer pods and the revision controller read (R-REN-1, R-REN-9).
func ConfigMap(namespace, name string, pod *corev1.Pod, version string) (*corev1.ConfigMap, error) {
	// JSON, as the operators write it: a label that is replaced by a number stays a string.
	text, err := json.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("write pod %s/%s as JSON: %w", pod.Namespace, pod.Name, err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string]string{"pod.yaml": string(text), "forceRedeploymentReason": "", "version": version},
	}, nil
}
