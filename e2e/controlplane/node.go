// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/testcluster/nodemachine"
)

const (
	poll = 50 * time.Millisecond
	// waitTimeout is for one step on a busy machine.
	waitTimeout = 3 * time.Minute

	podNetwork     = "10.128.0.0/14"
	podsOfNode     = "10.128.0.0/23"
	serviceNetwork = "172.30.0.0/16"
)

// Node is a machine with its control plane.
type Node struct {
	*nodemachine.Machine
	Progress io.Writer
	Started  time.Time

	Admin  *rest.Config
	kube   *kubernetes.Clientset
	client client.Client
	etcd   etcdFiles
}

// Method starts a control plane on a running machine.
type Method struct {
	Name string
	// Prepare runs before anything of a cluster, and is not measured.
	Prepare func(context.Context, *Node) error
	Begin   func(context.Context, *Node) error
	// Connect sets the node's Admin when the API server is ready.
	Connect func(context.Context, *Node) error
	// Join creates what a Ready node needs in addition.
	Join func(context.Context, *Node) error
	Etcd etcdFiles
}

// BringUp starts a control plane on a new machine, which the caller deletes, and measures it.
func (m Method) BringUp(ctx context.Context, config nodemachine.Config) (*Node, Start, error) {
	machine, err := nodemachine.Create(ctx, config)
	if err != nil {
		return nil, Start{}, err
	}
	n := &Node{Machine: machine, Progress: config.Progress, etcd: m.Etcd}
	start, err := m.up(ctx, n)
	if err != nil {
		return n, start, fmt.Errorf("bring up a control plane by %s: %w", m.Name, err)
	}
	return n, start, nil
}

func (m Method) up(ctx context.Context, n *Node) (Start, error) {
	n.Started = time.Now()
	if err := n.Start(ctx); err != nil {
		return Start{}, err
	}
	if err := n.Put(ctx, nodemachine.File{Path: "etc/cni/net.d/10-sno.conflist", Mode: 0o644, Content: []byte(fmt.Sprintf(networkConfig, podsOfNode))}); err != nil {
		return Start{}, err
	}
	if err := m.Prepare(ctx, n); err != nil {
		return Start{}, err
	}
	start, err := n.timed(ctx, m.Begin)
	if err != nil {
		return Start{}, err
	}
	n.logf("%s: the API server is ready %s after the first container", m.Name, seconds(start.Took))
	if err := m.Connect(ctx, n); err != nil {
		return start, err
	}
	// Warnings about pod security are not relevant here.
	n.Admin.WarningHandler = rest.NoWarnings{}
	if n.kube, err = kubernetes.NewForConfig(n.Admin); err != nil {
		return start, fmt.Errorf("connect to %s: %w", n.Admin.Host, err)
	}
	if n.client, err = client.New(n.Admin, client.Options{}); err != nil {
		return start, fmt.Errorf("connect to %s: %w", n.Admin.Host, err)
	}
	return start, m.Join(ctx, n)
}

// networkConfig uses plugins of every image for kind's nodes.
const networkConfig = `{
  "cniVersion": "0.4.0", "name": "sno",
  "plugins": [
    {"type": "ptp", "ipMasq": true, "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state",
      "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": "%s"}]]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

// kubelet returns the kubelet's configuration, which both methods share apart from more.
func kubelet(more map[string]any) ([]byte, error) {
	fields := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"staticPodPath":            "/etc/kubernetes/manifests",
		"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
		"cgroupDriver":             "systemd",
		// Many machines for CI only have control groups of version 1, which kubelets refuse by default.
		"failCgroupV1": false,
		"failSwapOn":   false,
		// The disk of this machine is not the node's.
		"evictionHard":                map[string]any{"imagefs.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%"},
		"imageGCHighThresholdPercent": 100,
		"rotateCertificates":          true,
	}
	for name, value := range more {
		fields[name] = value
	}
	text, err := yaml.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("write the configuration of the kubelet: %w", err)
	}
	return text, nil
}

func until(ctx context.Context, what string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	again := time.NewTicker(poll)
	defer again.Stop()
	for {
		err := try(ctx)
		var last final
		if err == nil || errors.As(err, &last) {
			return last.error
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, errors.Join(ctx.Err(), err))
		case <-again.C:
		}
	}
}

// final is a result that ends the wait: nil or an error.
type final struct{ error }

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func (n *Node) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(n.Progress, "        "+format+"\n", args...)
}
