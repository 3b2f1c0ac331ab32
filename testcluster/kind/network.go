// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	podSubnet   = "10.244.0.0/16"
	poll        = 200 * time.Millisecond
	networkFile = "/etc/cni/net.d/10-sno.conflist"
	routesFile  = "/etc/sno-routes"
	bootFile    = "/etc/systemd/system/kubelet.service.d/20-sno.conf"
)

// bootConfig has a node behave as a machine does when its container starts again: its boot ID is another one, although
// containers share that of the kernel, and its routes return. /run is empty then. systemd reads the file only at the
// start of the container, so a restart of the kubelet alone changes nothing before.
const bootConfig = `[Service]
ExecStartPre=-/bin/sh -c 'test -e /run/boot-id || { cat /proc/sys/kernel/random/uuid >/run/boot-id && \
  mount --bind /run/boot-id /proc/sys/kernel/random/boot_id; }'
ExecStartPre=-/bin/sh ` + routesFile + `
`

// networkConfig connects the pods of a node by plugins that are in every image for kind's nodes.
const networkConfig = `{
  "cniVersion": "0.4.0", "name": "sno",
  "plugins": [
    {"type": "ptp", "ipMasq": true, "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state",
      "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": "%s"}]]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

// Connect configures the network of every node: the pod CIDR of the node, and routes to those of the others. It
// returns when all nodes are Ready. Call it again after nodes have joined or restarted.
func (c *Cluster) Connect(ctx context.Context) error {
	nodes, err := c.withRanges(ctx)
	if err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for i := range nodes {
		group.Go(func() error { return c.configureNetwork(groupCtx, &nodes[i], nodes) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return c.waitReady(ctx)
}

func (c *Cluster) withRanges(ctx context.Context) ([]corev1.Node, error) {
	var nodes []corev1.Node
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, readyTimeout, true, func(ctx context.Context) (bool, error) {
		list, err := c.clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if last = err; err != nil {
			return false, nil
		}
		nodes = list.Items
		for i := range nodes {
			if nodes[i].Spec.PodCIDR == "" || address(&nodes[i]) == "" {
				return false, nil
			}
		}
		return len(nodes) > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the nodes' ranges of pods: %w", errors.Join(err, last))
	}
	return nodes, nil
}

func (c *Cluster) configureNetwork(ctx context.Context, node *corev1.Node, all []corev1.Node) error {
	var routes strings.Builder
	for i := range all {
		if all[i].Name != node.Name {
			fmt.Fprintf(&routes, "ip route replace %s via %s || exit\n", all[i].Spec.PodCIDR, address(&all[i]))
		}
	}
	for _, file := range []struct{ name, content string }{
		{networkFile, fmt.Sprintf(networkConfig, node.Spec.PodCIDR)}, {bootFile, bootConfig}, {routesFile, routes.String()},
	} {
		if _, err := c.engine.Pipe(ctx, strings.NewReader(file.content), "exec", "--interactive", node.Name, "sh", "-c", "cat >"+file.name); err != nil {
			return fmt.Errorf("configure the network of node %s: %w", node.Name, err)
		}
	}
	if _, err := c.Exec(ctx, node.Name, "sh", routesFile); err != nil {
		return fmt.Errorf("route from node %s: %w", node.Name, err)
	}
	return nil
}

func address(node *corev1.Node) string {
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

func (c *Cluster) waitReady(ctx context.Context) error {
	var wrong string
	err := wait.PollUntilContextTimeout(ctx, poll, readyTimeout, true, func(ctx context.Context) (bool, error) {
		list, err := c.clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			wrong = err.Error()
			return false, nil
		}
		wrong = ""
		for i := range list.Items {
			if why := notReady(&list.Items[i]); why != "" {
				wrong = "node " + list.Items[i].Name + ": " + why
			}
		}
		return wrong == "", nil
	})
	if err != nil {
		return fmt.Errorf("wait until the nodes are Ready: %w: %s", err, wrong)
	}
	return nil
}

// notReady returns why a node is not ready, or an empty string.
func notReady(node *corev1.Node) string {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
			return "taint " + taint.Key
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			if condition.Status == corev1.ConditionTrue {
				return ""
			}
			return condition.Reason + ": " + condition.Message
		}
	}
	return "its kubelet has reported nothing yet"
}

// WaitForNodes waits until nodes have registered, and connects them.
func (c *Cluster) WaitForNodes(ctx context.Context, names ...string) error {
	for _, name := range names {
		var last error
		err := wait.PollUntilContextTimeout(ctx, poll, readyTimeout, true, func(ctx context.Context) (bool, error) {
			_, last = c.clientset.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("wait for node %s to join: %w", name, errors.Join(err, last))
		}
	}
	return c.Connect(ctx)
}
