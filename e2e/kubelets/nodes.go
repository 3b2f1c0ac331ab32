// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solonode/sno/testcluster/embedded"
)

const rolePrefix = "node-role.kubernetes.io/"

// shape sets exactly the roles and taints that the scenario has for a node.
func (e *Env) shape(ctx context.Context, node string, spec embedded.NodeSpec) error {
	live, err := e.Cluster.Clientset().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read node %s: %w", node, err)
	}
	labels := map[string]any{}
	for label := range live.Labels {
		if strings.HasPrefix(label, rolePrefix) {
			labels[label] = nil
		}
	}
	for _, role := range spec.Roles {
		labels[rolePrefix+role] = ""
	}
	taints := append([]corev1.Taint{}, spec.Taints...)
	for _, taint := range live.Spec.Taints {
		if !strings.HasPrefix(taint.Key, rolePrefix) {
			taints = append(taints, taint)
		}
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"labels": labels, "resourceVersion": live.ResourceVersion}, "spec": map[string]any{"taints": taints},
	})
	if err != nil {
		return fmt.Errorf("shape node %s: %w", node, err)
	}
	if _, err := e.Cluster.Clientset().CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("shape node %s: %w", node, err)
	}
	return nil
}

// withhold stops a node's kubelet and deletes its Node, until it joins.
func (e *Env) withhold(ctx context.Context, node string) error {
	if _, err := e.Kind.Exec(ctx, node, "systemctl", "stop", "kubelet"); err != nil {
		return err
	}
	// The pods of kubeadm would conflict when the kubelet starts again.
	if _, err := e.Kind.Exec(ctx, node, "sh", "-c", "crictl pods --quiet | xargs --no-run-if-empty crictl --timeout=60s rmp --force"); err != nil {
		return err
	}
	if err := e.Cluster.Clientset().CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete node %s: %w", node, err)
	}
	return nil
}

// AddDay2Workers joins the scenario's day-2 workers, and returns when they are Ready. Further calls do nothing.
func (e *Env) AddDay2Workers(ctx context.Context) error {
	if len(e.later) == 0 {
		return nil
	}
	for _, node := range e.later {
		if _, err := e.Kind.Exec(ctx, node, "systemctl", "start", "kubelet"); err != nil {
			return err
		}
	}
	if err := e.Kind.WaitForNodes(ctx, e.later...); err != nil {
		return err
	}
	for i, spec := range e.Scenario.Day2Nodes() {
		if err := e.shape(ctx, e.later[i], spec); err != nil {
			return err
		}
	}
	e.later = nil
	return nil
}
