// SPDX-License-Identifier: Apache-2.0

// Package assets provides the programs of the embedded cluster (etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler, kwok) and of real nodes, in the versions of the Go module testcluster/kube, and those of Open Cluster
// Management, in the version of testcluster/ocm. It downloads what is released, verifies checksums, and builds the rest
// from source, into a cache folder, once. So a real control plane requires nothing but Go.
//
// The folders are
//
//	<cache>/kube/<key>/           etcd, kube-apiserver, ..., stages/*.yaml: all built from source
//	<cache>/kube/<key>-released/  the same, with at least one downloaded program, and their origin
//	<cache>/kube/<key>/           kubeadm, kubectl, kubelet, kube-proxy: those of EnsureNode, with another key
//	<cache>/kube/<key>/           e2e.test, agnhost, ginkgo: those of EnsureSuite, with a third key
//	<cache>/kube/<key>/           addon, placement, registration, registration-operator: those of EnsureOCM
//
// where <cache> is $SNO_CACHE, or sno in the user's cache folder, and <key> is a digest of the module's go.mod and
// go.sum, the Go version, the platform, and the recipe of this package. A folder has its name only when it is complete.
// etcd has the name that envtest requires, so KUBEBUILDER_ASSETS may name the folder.
//
// setup-envtest is not used: it provides etcd, kube-apiserver and kubectl only, and its module requires a newer
// k8s.io/apimachinery than Kubernetes has here.
package assets
