// SPDX-License-Identifier: Apache-2.0

package disturb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

var errNotRecovered = errors.New("the node has not recovered")

// RestartControlPlane restarts every node of the control plane, one after the other. Checks do not use it.
func (d *Disturber) RestartControlPlane(ctx context.Context) (*catalogue.Disruption, error) {
	return d.restart(ctx, "Restarting every node of the control plane", d.Before.ControlPlaneNodes())
}

func (d *Disturber) restart(ctx context.Context, what string, nodes []corev1.Node) (*catalogue.Disruption, error) {
	return d.disrupt(ctx, what, func(ctx context.Context, _ []appsv1.Deployment) (map[string]string, error) {
		for i := range nodes {
			if err := d.restartNode(ctx, nodes[i].Name); err != nil {
				return nil, fmt.Errorf("restart node %s: %w", nodes[i].Name, err)
			}
		}
		return nil, nil
	})
}

// restartNode returns when the node has another boot ID, is Ready, and reports none of the containers from before. The
// status of its pods can be from before the restart for a while after the node is Ready.
func (d *Disturber) restartNode(ctx context.Context, name string) error {
	before, err := d.read(ctx)
	if err != nil {
		return err
	}
	containers, bootID := runningOn(before, name), ""
	if node := before.Node(name); node != nil {
		bootID = node.Status.NodeInfo.BootID
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, d.Target.Times.Restart)
	defer cancel()
	if err := d.Target.RestartNode(limited, name); err != nil {
		return err
	}
	wrong := fmt.Errorf("%w within %s", errNotRecovered, d.Target.Times.Restart)
	recovered, err := cluster.Within(ctx, d.Target.Times.Poll, d.Target.Times.Restart-time.Since(began), func(ctx context.Context) (bool, error) {
		state, err := d.read(ctx)
		if err == nil {
			err = restarted(state, name, bootID, containers)
		}
		if ctx.Err() == nil { // an API server on the node does not answer for a while
			wrong = err
		}
		return err == nil, nil
	})
	if err != nil || recovered {
		return err
	}
	return wrong
}

// restarted returns what is missing from a restart.
func restarted(s *catalogue.State, name, bootID string, containers map[string]string) error {
	node := s.Node(name)
	switch {
	case node == nil:
		return fmt.Errorf("%w: it does not exist", errNotRecovered)
	case node.Status.NodeInfo.BootID == bootID:
		return fmt.Errorf("%w: status.nodeInfo.bootID is the same as before", catalogue.ErrNotPerformed)
	case !nodeReady(node):
		return fmt.Errorf("%w: it has booted and is not Ready", errNotRecovered)
	}
	for id, pod := range runningOn(s, name) {
		if containers[id] != "" {
			return fmt.Errorf("%w: it has booted, but pod %s still has a container from before", errNotRecovered, pod)
		}
	}
	return nil
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// runningOn returns the pods of the running containers of a node, by the containers' ids.
func runningOn(s *catalogue.State, node string) map[string]string {
	running := map[string]string{}
	for i := range s.Pods {
		pod := &s.Pods[i]
		if pod.Spec.NodeName != node {
			continue
		}
		for _, container := range pod.Status.ContainerStatuses {
			if container.State.Running != nil && container.ContainerID != "" {
				running[container.ContainerID] = pod.Namespace + "/" + pod.Name
			}
		}
	}
	return running
}
