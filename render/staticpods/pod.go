// SPDX-License-Identifier: Apache-2.0

package staticpods

// Pod describes a static pod and its objects.
type Pod struct {
	// Name is the ConfigMap with the manifest (key pod.yaml), such as kube-apiserver-pod.
	Name      string
	Namespace string
	// ConfigMaps and Secrets are copied for each revision, the pod's ConfigMap first.
	ConfigMaps, Secrets []Resource
	// CertDir is the folder of the objects without a revision, such as kube-apiserver-certs.
	CertDir                     string
	CertConfigMaps, CertSecrets []Resource
}

// Resource is a ConfigMap or a Secret.
type Resource struct {
	Name     string
	Optional bool
}
