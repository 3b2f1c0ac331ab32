package kubeapiserver

const (
	// Namespace is where the static pod is, and what is laid down for it.
	Namespace = "openshift-kube-apiserver"
	// BootstrapNamespace is the namespace of BootstrapKubeconfigs.
	BootstrapNamespace = "openshift-machine-config-operator"
	// BootstrapKubeconfigs is the Secret with the kubeconfigs of a kubelet that joins.
	BootstrapKubeconfigs = "node-bootstrapper-kubeconfigs"
	// AdminNamespace is the namespace of AdminKubeconfigs.
	AdminNamespace = operatorNamespace
	// AdminKubeconfigs is the Secret with the kubeconfigs of the cluster's administrator.
	AdminKubeconfigs = "admin-kubeconfigs"

	// LocalhostKubeconfig is the key of the kubeconfig for the API server on the same node.
	LocalhostKubeconfig = "localhost.kubeconfig"
	// RecoveryKubeconfig is the same for when its other serving certificates have ended.
	RecoveryKubeconfig = "localhost-recovery.kubeconfig"
	// InternalKubeconfig goes by the name of the load balancer for nodes.
	InternalKubeconfig = "lb-int.kubeconfig"
	// ExternalKubeconfig goes by the name of the load balancer for clients outside of the cluster.
	ExternalKubeconfig = "lb-ext.kubeconfig"

	operatorNamespace = "openshift-kube-apiserver-operator"
	configNamespace   = "openshift-config"
	managedNamespace  = "openshift-config-managed"
	etcdNamespace     = "openshift-etcd"

	component = "kube-apiserver"
	podName   = "kube-apiserver-pod"
	certDir   = "kube-apiserver-certs"

	// Where the pod sees what its installer laid down: a revision, and certificates that change without one.
	resourceDir = "/etc/kubernetes/static-pod-resources"
	certsDir    = "/etc/kubernetes/static-pod-certs"
	auditDir    = "/var/log/kube-apiserver"

	bootstrapper = "system:serviceaccount:" + BootstrapNamespace + ":node-bootstrapper"

	port = 6443
)

// revisioned returns the path of a file of the revision: kind is configmaps or secrets.
func revisioned(kind, name, key string) string {
	return resourceDir + "/" + kind + "/" + name + "/" + key
}

// unrevisioned returns the path of a file that changes without a revision.
func unrevisioned(kind, name, key string) string {
	return certsDir + "/" + kind + "/" + name + "/" + key
}
