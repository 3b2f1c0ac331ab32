// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/testcluster/scenario"
	"github.com/solonode/sno/topology/workload"
)

const routerLabel = "ingresscontroller.operator.openshift.io/deployment-ingresscontroller"

// TestVendoredHostOnOneNode runs the host operator that vendors the module on one node, where the router binds ports of
// the node (platform None) and where it does not (a cloud). Pinning changes the pod template, so AsExpected implies
// that a rollout has ended. A drain of the node must be able to end: every pod of the router can be evicted.
func TestVendoredHostOnOneNode(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"none-sno", "cloud-sno"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s, err := framework.Start(ctx, framework.Config{Scenario: name, Hosts: map[framework.Module][]string{framework.Ingress: nil}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			before := waitRouter(t, s, func(corev1.Pod) bool { return true })
			controller, err := s.RunController(ctx, framework.Ingress)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.WaitReason(ctx, framework.Ingress, waitTimeout, "AsExpected"); err != nil {
				t.Fatalf("%v\n%s", err, controller.LogTail(4000))
			}
			pinned := waitRouter(t, s, func(pod corev1.Pod) bool { return pod.UID != before.UID })
			if _, ok := pinned.Spec.NodeSelector["node-role.kubernetes.io/master"]; !ok {
				t.Errorf("the router's node selector is %v", pinned.Spec.NodeSelector)
			}

			eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pinned.Namespace, Name: pinned.Name}}
			if err := s.Cluster.Clientset().PolicyV1().Evictions(pinned.Namespace).Evict(ctx, eviction); err != nil {
				t.Fatalf("a drain of the only node could not end: %v", err)
			}
			waitRouter(t, s, func(pod corev1.Pod) bool { return pod.UID != pinned.UID })

			deployment := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"rolled":%q}}}}}`, name)
			deployments := s.Cluster.Clientset().AppsV1().Deployments(scenario.RouterNamespace)
			rolled, err := deployments.Patch(ctx, "router-default", types.StrategicMergePatchType, []byte(deployment), metav1.PatchOptions{FieldManager: "kubectl-rollout"})
			if err != nil {
				t.Fatal(err)
			}
			err = wait.PollUntilContextTimeout(ctx, pollRouter, waitTimeout, true, func(ctx context.Context) (bool, error) {
				live, err := deployments.Get(ctx, "router-default", metav1.GetOptions{})
				return err == nil && live.Status.ObservedGeneration >= rolled.Generation && workload.RolledOut(live), err
			})
			if err != nil {
				t.Errorf("the second rollout does not finish: %v", err)
			}
		})
	}
}

func waitRouter(t *testing.T, s *framework.ScenarioCluster, wanted func(corev1.Pod) bool) corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	err := wait.PollUntilContextTimeout(t.Context(), pollRouter, waitTimeout, true, func(ctx context.Context) (bool, error) {
		err := s.Cluster.Client().List(ctx, &pods, client.InNamespace(scenario.RouterNamespace), client.HasLabels{routerLabel})
		return len(pods.Items) == 1 && pods.Items[0].Status.Phase == corev1.PodRunning && pods.Items[0].DeletionTimestamp == nil && wanted(pods.Items[0]), err
	})
	if err != nil {
		for _, pod := range pods.Items {
			t.Logf("pod %s: %s, %v", pod.Name, pod.Status.Phase, pod.Status.Conditions)
		}
		t.Fatalf("the router does not settle: %v", err)
	}
	return pods.Items[0]
}
