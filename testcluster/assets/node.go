// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"io"
	"path/filepath"
	"slices"
)

// onNodes are the tools of testcluster/kube that a real node has and an embedded cluster has not. They are built
// separately, so that embedded clusters do not wait for them.
var onNodes = []string{"k8s.io/kubernetes/cmd/kube-proxy", "k8s.io/kubernetes/cmd/kubeadm", "k8s.io/kubernetes/cmd/kubectl", "k8s.io/kubernetes/cmd/kubelet"}

func ofNode(tool string) bool         { return slices.Contains(onNodes, tool) }
func ofControlPlane(tool string) bool { return !ofNode(tool) && !ofSuite(tool) }

// EnsureNode returns the folder of kubeadm, kubectl, kubelet and kube-proxy, of the versions of testcluster/kube. They
// are from the same places as those of Ensure, in a separate folder of the cache.
func EnsureNode(ctx context.Context, progress io.Writer) (Assets, error) {
	source, err := kubeSource(ctx)
	if err != nil {
		return Assets{}, err
	}
	return ensureGiven(ctx, source, ofNode, nil, progress)
}

// NodeKey returns the Kubernetes version of a node, such as v1.35.2, and a digest of the parts of a node's image that
// Ensure and EnsureNode return. It builds nothing.
func NodeKey(ctx context.Context) (version, key string, err error) {
	source, err := kubeSource(ctx)
	if err != nil {
		return "", "", err
	}
	node, err := readRecipe(ctx, source, ofNode)
	if err != nil {
		return "", "", err
	}
	control, err := readRecipe(ctx, source, ofControlPlane)
	if err != nil {
		return "", "", err
	}
	return node.version, control.key + " " + node.key, nil
}

func kubeSource(ctx context.Context) (string, error) {
	module, err := ModuleDir(ctx)
	return filepath.Join(module, "kube"), err
}
