// SPDX-License-Identifier: Apache-2.0

package existing

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
)

const restartedAt = "kubectl.kubernetes.io/restartedAt"

// onlyCheck runs one check.
func onlyCheck(t *testing.T, id string, options Options) (report.Result, string) {
	t.Helper()
	check, err := catalogue.Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	var progress strings.Builder
	options.Tiers, options.Progress = []catalogue.Tier{check.Tier}, &progress
	got, err := Target(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	got.Times = cluster.SimulatedTimes()
	run, err := runner.New(t.Context(), got, runner.Selection{Tiers: options.Tiers, IDs: []string{id}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = run.Close(t.Context()) }()
	if err := run.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	result, err := run.Result(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return result, progress.String()
}

// rollouts completes every rollout at once. It returns the values of the rollout annotation in order.
func rollouts(ctx context.Context, t *testing.T, kube kubernetes.Interface, namespace string) func() []string {
	t.Helper()
	watching, err := kube.AppsV1().Deployments(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := []string{}
	go func() {
		for event := range watching.ResultChan() {
			d, ok := event.Object.(*appsv1.Deployment)
			if !ok {
				continue
			}
			mu.Lock()
			if value := d.Spec.Template.Annotations[restartedAt]; len(seen) == 0 || seen[len(seen)-1] != value {
				seen = append(seen, value)
			}
			mu.Unlock()
			if d.Status.ObservedGeneration < d.Generation {
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
				if _, err := kube.AppsV1().Deployments(namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
					t.Error(err)
				}
			}
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

type warningCollector struct {
	mu    sync.Mutex
	texts []string
}

func (c *warningCollector) HandleWarningHeader(_ int, _, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts = append(c.texts, text)
}

// TestRolloutIsTakenBack: a run removes the annotation of its rollouts and keeps that of a person. Warnings of the API
// server are not printed.
func TestRolloutIsTakenBack(t *testing.T) {
	printed := &warningCollector{}
	rest.SetDefaultWarningHandler(printed)
	t.Cleanup(func() { rest.SetDefaultWarningHandler(rest.NoWarnings{}) })
	kube, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	const namespace = "openshift-console"
	createNamespace(t, namespace)
	createInfrastructure(t)
	for name, before := range map[string]string{"console": "", "downloads": "yesterday"} {
		labels := map[string]string{"app": name}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector: map[string]string{"node-role.kubernetes.io/master": ""}, // causes a warning of the API server
				Containers:   []corev1.Container{{Name: "x", Image: "x"}},
			}},
		}}
		if before != "" {
			d.Spec.Template.Annotations = map[string]string{restartedAt: before}
		}
		if _, err := kube.AppsV1().Deployments(namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = kube.AppsV1().Deployments(namespace).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
		})
	}
	seen := rollouts(t.Context(), t, kube, namespace)
	printed.texts = nil

	const id = "SNO-TOP-012"
	result, progress := onlyCheck(t, id, Options{Kubeconfig: kubeconfigOf(t, "administrator", masters)})
	if result.Status != report.Passed {
		t.Errorf("%s is %s: %s %+v\n%s", id, result.Status, result.Reason, result.Evidence, progress)
	}
	if values := seen(); !slices.ContainsFunc(values, func(value string) bool { return strings.HasPrefix(value, "20") }) {
		t.Errorf("nothing was rolled out: %q", values)
	}
	for name, want := range map[string]string{"console": "", "downloads": "yesterday"} {
		live, err := kube.AppsV1().Deployments(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if value, there := live.Spec.Template.Annotations[restartedAt]; value != want || there != (want != "") {
			t.Errorf("%s: the annotation is %q, exists: %t; want %q", name, value, there, want)
		}
	}
	printed.mu.Lock()
	defer printed.mu.Unlock()
	if len(printed.texts) > 0 {
		t.Errorf("warnings are printed: %q", printed.texts)
	}
}
