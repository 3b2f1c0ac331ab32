// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/kubeapiserver"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/staticpods"
	"github.com/solonode/sno/render/store"
)

// ErrUnknownNode is returned for a node that is not in the control plane, or if there are several and none was named.
var ErrUnknownNode = errors.New("name one node of the control plane")

// Making keys takes seconds.
const defaultLoopTimeout = 5 * time.Minute

// Options select the node of the files and limit the loops.
type Options struct {
	// Node is the control-plane node of the files. It may be empty if there is only one.
	Node string
	// LoopTimeout is the limit of each loop; zero means five minutes.
	LoopTimeout time.Duration
	Report      func(loop.Report)
}

// Result is a rendered control plane.
type Result struct {
	// Objects are all objects, ordered by group, kind, namespace and name.
	Objects []runtime.Object
	// Files are those of the static pods, relative to the node's root, ordered by path within each pod.
	Files []files.File
	// Kubeconfigs by file name: kubeconfig of the administrator by the load balancer, kubeconfig-localhost on the node,
	// and kubeconfig-kubelet with which the kubelet requests its certificate.
	Kubeconfigs map[string][]byte
}

// Run renders the control plane from the input.
func Run(ctx context.Context, s *inputs.Settings, o Options) (*Result, error) {
	return run(ctx, s, nil, o)
}

// Renew runs the loops over the objects of an earlier result. Due certificates are renewed and changes of the input or
// the settings are applied; a static pod gets a new revision if one of its objects has changed. If nothing is due the
// result is equal to the earlier one (R-REN-10).
func Renew(ctx context.Context, s *inputs.Settings, earlier []runtime.Object, o Options) (*Result, error) {
	return run(ctx, s, earlier, o)
}

func run(ctx context.Context, s *inputs.Settings, earlier []runtime.Object, o Options) (*Result, error) {
	node, err := selectNode(s, o.Node)
	if err != nil {
		return nil, err
	}
	if o.LoopTimeout == 0 {
		o.LoopTimeout = defaultLoopTimeout
	}
	api, err := newStore(s.Cluster, earlier)
	if err != nil {
		return nil, err
	}
	if err := loop.Run(ctx, api, Plan(s), loop.Options{Timeout: o.LoopTimeout, Report: o.Report}); err != nil {
		return nil, err
	}
	result := &Result{}
	if result.Objects, err = api.Objects(); err != nil {
		return nil, err
	}
	reader := api.Session("files")
	for _, c := range components {
		revision, err := librarygo.LatestRevision(ctx, reader, c.operator)
		if err != nil {
			return nil, err
		}
		pod := c.pod(s)
		podFiles, err := staticpods.Files(result.Objects, pod, revision, node)
		if err != nil {
			return nil, fmt.Errorf("files of %s: %w", pod.Name, err)
		}
		result.Files = append(result.Files, podFiles...)
	}
	result.Kubeconfigs, err = kubeconfigs(result.Objects)
	return result, err
}

func selectNode(s *inputs.Settings, name string) (string, error) {
	if name == "" && len(s.Nodes) == 1 {
		return s.Nodes[0].Name, nil
	}
	var names []string
	for _, node := range s.Nodes {
		if node.Name == name {
			return name, nil
		}
		names = append(names, node.Name)
	}
	return "", fmt.Errorf("node %q: %w: %v", name, ErrUnknownNode, names)
}

// kubeconfigs returns the kubeconfigs of the administrator and the kubelet from kube-apiserver's Secrets.
func kubeconfigs(objects []runtime.Object) (map[string][]byte, error) {
	admin := store.Object{Namespace: kubeapiserver.AdminNamespace, Name: kubeapiserver.AdminKubeconfigs}
	kubelet := store.Object{Namespace: kubeapiserver.BootstrapNamespace, Name: kubeapiserver.BootstrapKubeconfigs}
	found := map[string][]byte{}
	for name, from := range map[string]struct {
		secret store.Object
		key    string
	}{
		"kubeconfig":           {admin, kubeapiserver.ExternalKubeconfig},
		"kubeconfig-localhost": {admin, kubeapiserver.LocalhostKubeconfig},
		"kubeconfig-kubelet":   {kubelet, kubeapiserver.LocalhostKubeconfig},
	} {
		if secret := find[*corev1.Secret](objects, from.secret); secret != nil {
			found[name] = secret.Data[from.key]
		}
		if len(found[name]) == 0 {
			return nil, fmt.Errorf("key %s of secret %s: %w", from.key, from.secret, staticpods.ErrMissing)
		}
	}
	return found, nil
}

// find returns the object of that type and name, or nil.
func find[T interface {
	metav1.Object
	runtime.Object
}](objects []runtime.Object, name store.Object) (found T) {
	for _, object := range objects {
		if typed, is := object.(T); is && typed.GetNamespace() == name.Namespace && typed.GetName() == name.Name {
			return typed
		}
	}
	return found
}
