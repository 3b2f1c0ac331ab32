// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import "github.com/solonode/sno/render/podtemplate"

const (
	// Namespace is that of the static pod and its objects.
	Namespace = "openshift-kube-apiserver"
	// BootstrapNamespace is the namespace of BootstrapKubeconfigs.
	BootstrapNamespace = "openshift-machine-config-operator"
	// BootstrapKubeconfigs is the Secret with the kubeconfigs of a joining kubelet.
	BootstrapKubeconfigs = "node-bootstrapper-kubeconfigs"
	// AdminNamespace is the namespace of AdminKubeconfigs.
	AdminNamespace = operatorNamespace
	// AdminKubeconfigs is the Secret with the kubeconfigs of the cluster's administrator.
	AdminKubeconfigs = "admin-kubeconfigs"

	// LocalhostKubeconfig is the key of the kubeconfig for the API server on the same node.
	LocalhostKubeconfig = "localhost.kubeconfig"
	// RecoveryKubeconfig is for use when the other serving certificates have expired.
	RecoveryKubeconfig = "localhost-recovery.kubeconfig"
	// InternalKubeconfig uses the internal load balancer.
	InternalKubeconfig = "lb-int.kubeconfig"
	// ExternalKubeconfig uses the external load balancer.
	ExternalKubeconfig = "lb-ext.kubeconfig"

	operatorNamespace = "openshift-kube-apiserver-operator"
	configNamespace   = "openshift-config"
	managedNamespace  = "openshift-config-managed"
	etcdNamespace     = "openshift-etcd"

	component = "kube-apiserver"
	podName   = "kube-apiserver-pod"
	certDir   = "kube-apiserver-certs"

	auditDir = "/var/log/kube-apiserver"

	bootstrapper = "system:serviceaccount:" + BootstrapNamespace + ":node-bootstrapper"

	port = 6443
)

// revisioned returns the path of a file of the revision; kind is configmaps or secrets.
func revisioned(kind, name, key string) string {
	return podtemplate.ResourceDir + "/" + kind + "/" + name + "/" + key
}

// unrevisioned returns the path of a file without a revision.
func unrevisioned(kind, name, key string) string {
	return podtemplate.CertDir + "/" + kind + "/" + name + "/" + key
}
