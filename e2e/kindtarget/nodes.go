package kindtarget

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

// shape gives a node the roles and taints that the scenario has for it, and no others.
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

// withhold takes a node off the cluster until it joins: its kubelet stops.
func (e *Env) withhold(ctx context.Context, node string) error {
	if _, err := e.Kind.Exec(ctx, node, "systemctl", "stop", "kubelet"); err != nil {
		return err
	}
	// What kubeadm has put there would be in the way when the kubelet comes back.
	if _, err := e.Kind.Exec(ctx, node, "sh", "-c", "crictl pods --quiet | xargs --no-run-if-empty crictl --timeout=60s rmp --force"); err != nil {
		return err
	}
	if err := e.Cluster.Clientset().CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("take node %s off the cluster: %w", node, err)
	}
	return nil
}

// AddDay2Workers has the scenario's later workers join, and returns when they are Ready. Further calls do nothing.
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
