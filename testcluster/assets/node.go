package assets

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
)

// EnsureNode returns the folder of the programs that a real node has and an embedded cluster has not: kubeadm, kubectl, kubelet and kube-proxy, of
// the versions of testcluster/kube/node. It builds them as Ensure does, into a folder of their own: who starts no node does not wait for them.
func EnsureNode(ctx context.Context, progress io.Writer) (Assets, error) {
	dir, err := nodeSource(ctx)
	if err != nil {
		return Assets{}, err
	}
	return ensureSet(ctx, dir, progress)
}

// NodeKey returns the Kubernetes version of a node, such as v1.36.3, and a digest of everything of Ensure and EnsureNode that a node's image is made of.
// It builds nothing.
func NodeKey(ctx context.Context) (version, key string, err error) {
	dir, err := nodeSource(ctx)
	if err != nil {
		return "", "", err
	}
	node, err := readRecipe(ctx, dir)
	if err != nil {
		return "", "", err
	}
	control, err := readRecipe(ctx, filepath.Dir(dir))
	if err != nil {
		return "", "", err
	}
	if node.version != control.version {
		return "", "", fmt.Errorf("testcluster/kube/node has Kubernetes %s, and testcluster/kube %s: run make versions", node.version, control.version)
	}
	return node.version, control.key + " " + node.key, nil
}

func nodeSource(ctx context.Context) (string, error) {
	module, err := ModuleDir(ctx)
	return filepath.Join(module, "kube", "node"), err
}
