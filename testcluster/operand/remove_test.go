// SPDX-License-Identifier: Apache-2.0

package operand

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/eventually"
)

// Pods that are removed right after an outage of the API server are recreated.
func TestRemovedPodsAreRecreated(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster; make proof runs it")
	}
	t.Parallel()
	ctx := t.Context()
	cluster, err := embedded.Start(ctx, embedded.Config{CRDs: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop() })
	worker := []string{"worker"}
	if err := cluster.AddNodes(ctx, embedded.NodeSpec{Name: "stays", Roles: worker}); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "two"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "two"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "none"}},
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: corev1.LabelHostname},
			}}},
		}},
	}}
	deployments := cluster.Clientset().AppsV1().Deployments(deployment.Namespace)
	if _, err := deployments.Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	available := func(n int32) func() error {
		return func() error {
			live, err := deployments.Get(ctx, deployment.Name, metav1.GetOptions{})
			if err == nil && live.Status.AvailableReplicas != n {
				err = fmt.Errorf("%d pods are available, want %d", live.Status.AvailableReplicas, n)
			}
			return err
		}
	}
	eventually.Succeeds(t, "the first pod runs", available(1))
	if err := cluster.AddNodes(ctx, embedded.NodeSpec{Name: "emptied", Roles: worker}); err != nil {
		t.Fatal(err)
	}
	if err := cluster.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.StartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	// The controllers restart their watches one after the other, some seconds apart.
	if _, err := deployments.Patch(ctx, deployment.Name, types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	removed := 0
	eventually.Succeeds(t, "three pods are removed", func() error {
		pods, err := evictable(ctx, cluster, "emptied")
		for i := range pods {
			if err := Remove(ctx, cluster, &pods[i]); err != nil {
				t.Fatal(err)
			}
			removed++
		}
		if err == nil && removed < 3 {
			err = fmt.Errorf("%d are", removed)
		}
		return err
	})
	eventually.Succeeds(t, "the last one is recreated", available(2))
}
