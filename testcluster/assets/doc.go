// Package assets builds the programs of the embedded cluster (etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok) from
// the Go module testcluster/kube, once, into a cache folder, so that a machine with Go and nothing else can run a real control plane.
//
// The folder is
//
//	<cache>/kube/<key>/          etcd, kube-apiserver, ..., stages/*.yaml
//	<cache>/kube/<key>/          kubeadm, kubectl, kubelet, kube-proxy: those of EnsureNode
//	<cache>/kube/current         symbolic link to the folder that was asked for last
//	<cache>/kube/programs/       programs of tests that need packages of Kubernetes, see EnsureProgram
//
// where <cache> is $SNO_CACHE, or sno in the user's cache folder, and <key> is a digest of everything that decides the content:
// testcluster/kube/go.mod and go.sum, the Go version, the platform, and this package's own recipe. A folder appears under its name only
// when it is complete. The etcd binary has the name that controller-runtime's envtest looks for, so KUBEBUILDER_ASSETS may point here.
package assets
