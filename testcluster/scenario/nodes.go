// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/testcluster/embedded"
)

// Keys of the NoSchedule taints.
const (
	MasterTaint  = "node-role.kubernetes.io/master"
	ArbiterTaint = "node-role.kubernetes.io/arbiter"
)

// Nodes returns the nodes of the installation.
func (s Scenario) Nodes() []embedded.NodeSpec {
	master := embedded.NodeSpec{Roles: []string{"master", "control-plane"}}
	if s.MastersSchedulable {
		master.Roles = append(master.Roles, "worker")
	} else {
		master.Taints = []corev1.Taint{{Key: MasterTaint, Effect: corev1.TaintEffectNoSchedule}}
	}
	arbiter := embedded.NodeSpec{
		Roles:  []string{"arbiter"},
		Taints: []corev1.Taint{{Key: ArbiterTaint, Effect: corev1.TaintEffectNoSchedule}},
	}
	nodes := numbered(master, "master", s.Masters)
	nodes = append(nodes, numbered(arbiter, "arbiter", s.Arbiters)...)
	return append(nodes, numbered(worker(), "worker", s.Day1Workers)...)
}

// Day2Nodes returns the workers that are added after the installation.
func (s Scenario) Day2Nodes() []embedded.NodeSpec {
	return numbered(worker(), "day2-worker", s.Day2Workers)
}

func worker() embedded.NodeSpec { return embedded.NodeSpec{Roles: []string{"worker"}} }

func numbered(spec embedded.NodeSpec, prefix string, count int) []embedded.NodeSpec {
	nodes := make([]embedded.NodeSpec, count)
	for i := range nodes {
		nodes[i] = spec
		nodes[i].Name = fmt.Sprintf("%s-%d", prefix, i)
	}
	return nodes
}

// AddDay2Workers adds the scenario's day-2 workers to a cluster and returns when they are Ready.
func (s Scenario) AddDay2Workers(ctx context.Context, c *embedded.Cluster) error {
	if err := c.AddNodes(ctx, s.Day2Nodes()...); err != nil {
		return fmt.Errorf("add the day-2 workers: %w", err)
	}
	return nil
}

// EtcdPod stands in for the static pod of etcd on a node, which the stock etcd operator needs for a guard. As a mirror
// pod it is not evicted.
func EtcdPod(node string) *corev1.Pod {
	pod := staticPod(EtcdNamespace, "etcd", node)
	pod.Labels, pod.Annotations = map[string]string{"app": "etcd", "etcd": "true", "k8s-app": "etcd"}, map[string]string{corev1.MirrorPodAnnotationKey: node}
	return pod
}

// controlPlanePod stands in for the static pods of a control-plane node. Because of its requests the scheduler prefers
// an added worker, which is empty; otherwise both would score the same, and a router would move only sometimes.
func controlPlanePod(node string) *corev1.Pod {
	pod := staticPod(ControlPlaneNamespace, "control-plane", node)
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("6Gi"),
	}
	return pod
}

func staticPod(namespace, name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + node},
		Spec: corev1.PodSpec{
			NodeName: node, HostNetwork: true, PriorityClassName: "system-node-critical", Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: name, Image: name}},
		},
	}
}
