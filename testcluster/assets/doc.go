// Package assets builds the programs of the embedded cluster (etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler, kwok) from the Go module testcluster/kube into a cache folder, once, so that a real control plane
// requires nothing but Go.
//
// The folder is
//
//	<cache>/kube/<key>/          etcd, kube-apiserver, ..., stages/*.yaml
//	<cache>/kube/<key>/          kubeadm, kubectl, kubelet, kube-proxy: those of EnsureNode
//	<cache>/kube/current         symbolic link to the folder that was asked for last
//	<cache>/kube/programs/       programs of tests that need packages of Kubernetes, see EnsureProgram
//
// where <cache> is $SNO_CACHE, or sno in the user's cache folder, and <key> is a digest of testcluster/kube/go.mod
// and go.sum, the Go version, the platform, and the recipe of this package. A folder has its name only when it is
// complete. etcd has the name that envtest requires, so KUBEBUILDER_ASSETS may name the folder.
package assets
