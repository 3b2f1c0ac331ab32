package staticpods

// Pod describes a static pod and what it mounts.
type Pod struct {
	// Name is that of the ConfigMap with the manifest (key pod.yaml), such as kube-apiserver-pod.
	Name      string
	Namespace string
	// ConfigMaps and Secrets are copied for each revision, the pod's ConfigMap first.
	ConfigMaps, Secrets []Resource
	// CertDir is the folder of what is not copied for each revision, such as kube-apiserver-certs.
	CertDir                     string
	CertConfigMaps, CertSecrets []Resource
}

// Resource is a ConfigMap or a Secret.
type Resource struct {
	Name string
	// Optional ones need not be there.
	Optional bool
}
