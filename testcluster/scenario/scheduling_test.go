// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/eventually"
)

// These tests do not use the modules. They verify that a router on the embedded cluster has the problems of a real
// one, which other tests show the modules to prevent.

var routerLabels = map[string]string{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"}

func router(role string, change ...func(*appsv1.DeploymentSpec)) *appsv1.Deployment {
	quarter := intstr.FromString("25%")
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: RouterNamespace, Name: "router-default"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: routerLabels},
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &quarter, MaxSurge: &quarter},
			},
			ProgressDeadlineSeconds: ptr.To[int32](3),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: routerLabels},
				Spec: corev1.PodSpec{
					NodeSelector:      map[string]string{"kubernetes.io/os": "linux", "node-role.kubernetes.io/" + role: ""},
					PriorityClassName: "system-cluster-critical",
					Containers: []corev1.Container{{
						Name: "router", Image: "router",
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
						}},
					}},
				},
			},
		},
	}
	for _, f := range change {
		f(&deployment.Spec)
	}
	return deployment
}

func requiredAntiAffinity(spec *appsv1.DeploymentSpec) {
	spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: routerLabels},
		}},
	}}
}

func hostPort(spec *appsv1.DeploymentSpec) {
	spec.Template.Spec.HostNetwork = true
	spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 443, HostPort: 443}}
}

func replaceInPlace(spec *appsv1.DeploymentSpec) {
	spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intstr.FromInt32(1)), MaxSurge: ptr.To(intstr.FromInt32(0))}
}

func routerPods(ctx context.Context, t *testing.T, kube client.Client) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := kube.List(ctx, &pods, client.InNamespace(RouterNamespace), client.MatchingLabels(routerLabels)); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

func runningRouter(ctx context.Context, t *testing.T, kube client.Client, before string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually.Succeeds(t, "a router pod runs", func() error {
		pods := routerPods(ctx, t, kube)
		if len(pods) != 1 || pods[0].Name == before || pods[0].Status.Phase != corev1.PodRunning {
			return errors.New(describe(pods))
		}
		pod = &pods[0]
		return nil
	})
	return pod
}

func describe(pods []corev1.Pod) string {
	var lines []string
	for _, pod := range pods {
		line := fmt.Sprintf("%s %s on %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		for _, condition := range pod.Status.Conditions {
			if condition.Status != corev1.ConditionTrue {
				line += fmt.Sprintf(" %s: %s", condition.Type, condition.Message)
			}
		}
		lines = append(lines, line)
	}
	return fmt.Sprintf("%d router pods: %s", len(pods), strings.Join(lines, "; "))
}

func pendingRouter(ctx context.Context, t *testing.T, kube client.Client, why string) {
	t.Helper()
	eventually.Succeeds(t, "a router pod cannot be scheduled", func() error {
		pods := routerPods(ctx, t, kube)
		for _, pod := range pods {
			for _, condition := range pod.Status.Conditions {
				if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable && strings.Contains(condition.Message, why) {
					return nil
				}
			}
		}
		return errors.New(describe(pods))
	})
}

func deleteThrice(ctx context.Context, t *testing.T, kube client.Client, pod *corev1.Pod) []string {
	t.Helper()
	var nodes []string
	for range 3 {
		if err := kube.Delete(ctx, pod); err != nil {
			t.Fatal(err)
		}
		pod = runningRouter(ctx, t, kube, pod.Name)
		nodes = append(nodes, pod.Spec.NodeName)
	}
	return nodes
}

func TestRouterFloatsUnlessPinned(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts clusters; make proof runs it")
	}
	for _, test := range []struct {
		role string
		want string
	}{
		{role: "worker", want: "day2-worker-"},
		{role: "master", want: "master-0"},
	} {
		t.Run(test.role, func(t *testing.T) {
			ctx := testContext(t)
			s, c := install(ctx, t, "none-sno-day2-workers")
			kube := c.Client()
			if err := kube.Create(ctx, router(test.role)); err != nil {
				t.Fatal(err)
			}
			pod := runningRouter(ctx, t, kube, "")
			if pod.Spec.NodeName != "master-0" {
				t.Fatalf("the router starts on %s, before there is any other node", pod.Spec.NodeName)
			}
			if err := s.AddDay2Workers(ctx, c); err != nil {
				t.Fatal(err)
			}
			nodes := deleteThrice(ctx, t, kube, pod)
			for _, node := range nodes {
				if !strings.HasPrefix(node, test.want) {
					t.Errorf("router pods ran on %v, want %s every time", nodes, test.want)
				}
			}
		})
	}
}

// TestPinnedWithoutTolerationIsPending verifies the problem of a pinned router on a cluster that was installed with
// workers.
func TestPinnedWithoutTolerationIsPending(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster; make proof runs it")
	}
	ctx := testContext(t)
	_, c := install(ctx, t, "none-sno-day1-worker")
	kube := c.Client()
	pinned := router("master")
	if err := kube.Create(ctx, pinned); err != nil {
		t.Fatal(err)
	}
	pendingRouter(ctx, t, kube, "untolerated taint")
	patch := client.MergeFrom(pinned.DeepCopy())
	pinned.Spec.Template.Spec.Tolerations = []corev1.Toleration{
		{Key: MasterTaint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	}
	if err := kube.Patch(ctx, pinned, patch); err != nil {
		t.Fatal(err)
	}
	if pod := runningRouter(ctx, t, kube, ""); pod.Spec.NodeName != "master-0" {
		t.Errorf("the pinned router runs on %s", pod.Spec.NodeName)
	}
}

func TestRolloutOnOneNode(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster; make proof runs it")
	}
	for _, test := range []struct {
		name   string
		change []func(*appsv1.DeploymentSpec)
		why    string
	}{
		{"required anti-affinity and 25%/25%", []func(*appsv1.DeploymentSpec){requiredAntiAffinity}, "anti-affinity rules"},
		{"host port and 25% surge", []func(*appsv1.DeploymentSpec){hostPort}, "free ports"},
		{"required anti-affinity, replaced in place", []func(*appsv1.DeploymentSpec){requiredAntiAffinity, replaceInPlace}, ""},
		{"host port, replaced in place", []func(*appsv1.DeploymentSpec){hostPort, replaceInPlace}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := testContext(t)
			_, c := install(ctx, t, "none-sno")
			kube := c.Client()
			deployment := router("worker", test.change...)
			if err := kube.Create(ctx, deployment); err != nil {
				t.Fatal(err)
			}
			old := runningRouter(ctx, t, kube, "")
			rollOut(ctx, t, c, deployment)
			if test.why == "" {
				runningRouter(ctx, t, kube, old.Name)
				return
			}
			pendingRouter(ctx, t, kube, test.why)
			eventually.Succeeds(t, "the rollout exceeds its deadline", func() error {
				if err := kube.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
					return err
				}
				for _, condition := range deployment.Status.Conditions {
					if condition.Type == appsv1.DeploymentProgressing && condition.Reason == "ProgressDeadlineExceeded" {
						return nil
					}
				}
				return errors.New(fmt.Sprint(deployment.Status.Conditions))
			})
			// Of one replica, 25 % rounds down to 0 unavailable, so the old pod stays, and the new one cannot be placed.
			pods := routerPods(ctx, t, kube)
			if len(pods) != 2 {
				t.Errorf("%s, want the old pod and a pending one", describe(pods))
			}
		})
	}
}

func rollOut(ctx context.Context, t *testing.T, c *embedded.Cluster, deployment *appsv1.Deployment) {
	t.Helper()
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Template.Annotations = map[string]string{"rollout": "2"}
	if err := c.Client().Patch(ctx, deployment, patch); err != nil {
		t.Fatal(err)
	}
}
