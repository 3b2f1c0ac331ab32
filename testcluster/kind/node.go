// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/solonode/sno/testcluster/nodeimage"
)

// restartTimeout is for a node with all its pods, including the API server.
const restartTimeout = 5 * time.Minute

// Nodes returns the names of the nodes, which are those of their containers: the control plane first, each group by
// number.
func (c *Cluster) Nodes() ([]string, error) {
	nodes, err := c.provider.ListInternalNodes(c.name)
	if err != nil {
		return nil, fmt.Errorf("list the nodes of cluster %s: %w", c.name, err)
	}
	var control, workers []string
	for _, node := range nodes {
		role, err := node.Role()
		if err != nil {
			return nil, fmt.Errorf("find the role of node %s: %w", node, err)
		}
		if role == "control-plane" {
			control = append(control, node.String())
		} else {
			workers = append(workers, node.String())
		}
	}
	numbered := func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
	slices.SortFunc(control, numbered)
	slices.SortFunc(workers, numbered)
	return append(control, workers...), nil
}

// Exec runs a command on a node as root and returns its output.
func (c *Cluster) Exec(ctx context.Context, node string, command ...string) (string, error) {
	return c.engine.Output(ctx, append([]string{"exec", node}, command...)...)
}

// Restart restarts a node without a shutdown, as a reset button does, and returns when it has booted and all nodes are
// Ready.
func (c *Cluster) Restart(ctx context.Context, node string) error {
	before, err := c.clientset.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read node %s: %w", node, err)
	}
	since := heartbeat(before)
	if _, err := c.engine.Output(ctx, "restart", "--time", "0", node); err != nil {
		return fmt.Errorf("restart node %s: %w", node, err)
	}
	return c.returned(ctx, node, since)
}

func (c *Cluster) returned(ctx context.Context, node string, since metav1.Time) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, restartTimeout, true, func(ctx context.Context) (bool, error) {
		now, err := c.clientset.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if last = err; err != nil {
			return false, nil
		}
		h := heartbeat(now)
		return since.Before(&h), nil
	})
	if err != nil {
		return fmt.Errorf("wait for the kubelet of node %s after its restart: %w", node, errors.Join(err, last))
	}
	return c.Connect(ctx)
}

func heartbeat(node *corev1.Node) metav1.Time {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.LastHeartbeatTime
		}
	}
	return metav1.Time{}
}

func (c *Cluster) containerd(node string) nodeimage.Containerd {
	return nodeimage.Containerd{Engine: c.engine, Container: node}
}

// Load loads the images of an archive, as package images or `docker save` writes them, on all nodes.
func (c *Cluster) Load(ctx context.Context, archive string) error {
	nodes, err := c.Nodes()
	if err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, node := range nodes {
		group.Go(func() error { return c.containerd(node).Load(groupCtx, archive) })
	}
	return group.Wait()
}

// Address returns the address of a node in the cluster's network. On Linux this machine can reach it.
func (c *Cluster) Address(ctx context.Context, node string) (string, error) {
	return c.engine.Output(ctx, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", node)
}

// Pack writes a layer for an image (images.Image.Tar) with programs of the nodes, by their paths there, and their
// libraries.
func (c *Cluster) Pack(ctx context.Context, file string, programs ...string) error {
	nodes, err := c.Nodes()
	if err != nil {
		return err
	}
	return c.containerd(nodes[0]).Pack(ctx, file, programs...)
}

// Tag adds names to an image that is on all nodes.
func (c *Cluster) Tag(ctx context.Context, image string, names ...string) error {
	nodes, err := c.Nodes()
	if err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, node := range nodes {
		group.Go(func() error { return c.containerd(node).Tag(groupCtx, image, names...) })
	}
	return group.Wait()
}

// Logs writes the logs of nodes and pods into a folder.
func (c *Cluster) Logs(folder string) error {
	if err := c.provider.CollectLogs(c.name, folder); err != nil {
		return fmt.Errorf("collect the logs of cluster %s: %w", c.name, err)
	}
	return nil
}

// WaitForAPIServer waits until the API server is ready.
func (c *Cluster) WaitForAPIServer(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		_, last = c.clientset.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the API server is ready: %w", errors.Join(err, last))
	}
	return nil
}
