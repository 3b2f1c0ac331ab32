// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

type workloadCopy struct {
	*workloadCopier
	shape
	namespace string
}

func (w *workloadCopier) begin(ctx context.Context, s shape) (*workloadCopy, error) {
	c := &workloadCopy{workloadCopier: w, shape: s}
	w.mu.Lock()
	if n := len(w.free); n > 0 {
		c.namespace, w.free = w.free[n-1], w.free[:n-1]
	}
	w.mu.Unlock()
	if c.namespace != "" {
		return c, nil
	}
	namespace, err := w.kube.CoreV1().Namespaces().Create(ctx, copyNamespace(w.id), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create a namespace for a copy of %s: %w", s.deployment.Name, policyError(err))
	}
	c.namespace = namespace.Name
	err = wait.PollUntilContextTimeout(ctx, w.times.Poll, w.times.Ready, true, func(ctx context.Context) (bool, error) {
		_, err := w.kube.CoreV1().ServiceAccounts(c.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the service account of namespace %s: %w", c.namespace, err)
	}
	return c, nil
}

// end deletes the copy and frees its namespace. After an interruption close deletes the namespace.
func (c *workloadCopy) end(ctx context.Context) {
	if c.clear(ctx) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, c.namespace)
}

func (c *workloadCopy) clear(ctx context.Context) error {
	for i := range c.budgets {
		err := c.kube.PolicyV1().PodDisruptionBudgets(c.namespace).Delete(ctx, c.budgets[i].Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	err := c.kube.AppsV1().Deployments(c.namespace).Delete(ctx, c.deployment.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return c.until(ctx, func() bool {
		_, err := c.deployments.Deployments(c.namespace).Get(c.deployment.Name)
		return len(c.all()) == 0 && apierrors.IsNotFound(err)
	})
}

func (c *workloadCopy) deploy(ctx context.Context) error {
	for i := range c.budgets {
		if _, err := c.kube.PolicyV1().PodDisruptionBudgets(c.namespace).Create(ctx, &c.budgets[i], metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("copy PodDisruptionBudget %s: %w", c.budgets[i].Name, policyError(err))
		}
	}
	made, err := c.kube.AppsV1().Deployments(c.namespace).Create(ctx, c.deployment, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("copy Deployment %s: %w", c.deployment.Name, policyError(err))
	}
	return c.until(ctx, func() bool { return c.rolledOut(made.Generation) })
}

func (c *workloadCopy) roll(ctx context.Context) error {
	body := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:"2"}}}}}`, revisionAnnotation)
	rolled, err := c.kube.AppsV1().Deployments(c.namespace).Patch(ctx, c.deployment.Name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("roll out the copy of %s: %w", c.deployment.Name, policyError(err))
	}
	return c.until(ctx, func() bool { return c.rolledOut(rolled.Generation) })
}

// evict evicts every pod, one after the other, and retries while a budget refuses.
func (c *workloadCopy) evict(ctx context.Context) error {
	for _, pod := range c.running() {
		var lastErr error
		granted, err := cluster.Within(ctx, c.times.Poll, c.times.Stuck, func(ctx context.Context) (bool, error) {
			err := c.kube.PolicyV1().Evictions(c.namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: pod.Name}})
			if ctx.Err() == nil || lastErr == nil { // the end of the limit is not an answer
				lastErr = err
			}
			return err == nil || apierrors.IsNotFound(err), nil
		})
		if err != nil {
			return fmt.Errorf("evict a pod of the copy of %s: %w", c.deployment.Name, err)
		}
		if !granted {
			if rejection := policyError(lastErr); errors.Is(rejection, catalogue.ErrInconclusive) {
				return fmt.Errorf("evict a pod of the copy of %s: %w", c.deployment.Name, rejection)
			}
			return fmt.Errorf("%w: %s", errStuck, cluster.EvictionRefusal(lastErr))
		}
		if err := c.replaced(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// deletions is how often a single pod is deleted, because it can return to its pool by chance once.
const deletions = 3

func (c *workloadCopy) delete(ctx context.Context, r *catalogue.CopyResult) error {
	pods := c.running()
	for _, pod := range pods {
		r.InitialNodes = append(r.InitialNodes, pod.Spec.NodeName)
	}
	rounds := 1
	if len(pods) == 1 {
		rounds = deletions
	}
	for range rounds {
		for _, pod := range c.running() {
			if err := c.kube.CoreV1().Pods(c.namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete a pod of the copy of %s: %w", c.deployment.Name, err)
			}
			if err := c.replaced(ctx, pod); err != nil {
				return err
			}
		}
		for _, pod := range c.running() {
			r.NodesAfterDeletion = append(r.NodesAfterDeletion, pod.Spec.NodeName)
		}
	}
	return nil
}

func (c *workloadCopy) replaced(ctx context.Context, old *corev1.Pod) error {
	return c.until(ctx, func() bool {
		for _, pod := range c.all() {
			if pod.UID == old.UID {
				return false
			}
		}
		return c.rolledOut(0)
	})
}

// cacheInterval is the time between two reads of the caches, which watches keep up to date.
const cacheInterval = 50 * time.Millisecond

// until waits for done. It fails if nothing has changed for a while and nothing is still to come.
func (c *workloadCopy) until(ctx context.Context, done func() bool) error {
	var last []string
	since := time.Now()
	reached, err := cluster.Within(ctx, cacheInterval, c.times.Ready, func(context.Context) (bool, error) {
		if now := c.versions(); !slices.Equal(last, now) {
			last, since = now, time.Now()
		}
		if done() {
			return true, nil
		}
		if time.Since(since) > c.times.Stuck && !c.starting() {
			return false, c.stuck()
		}
		return false, nil
	})
	if err != nil || reached {
		return err
	}
	return c.stuck()
}

func (c *workloadCopy) versions() []string {
	var all []string
	if live, err := c.deployments.Deployments(c.namespace).Get(c.deployment.Name); err == nil {
		all = append(all, live.ResourceVersion)
	}
	for _, pod := range c.all() {
		all = append(all, pod.ResourceVersion)
	}
	return all
}

// stuck returns a finding about the copy, or catalogue.ErrInconclusive if the cluster prevents its pods.
func (c *workloadCopy) stuck() error {
	for _, pod := range c.all() {
		if why := imageProblem(pod); why != "" {
			err := fmt.Errorf("%w: %s", catalogue.ErrInconclusive, why)
			c.mu.Lock()
			c.unusable = err
			c.mu.Unlock()
			return err
		}
	}
	if live, err := c.deployments.Deployments(c.namespace).Get(c.deployment.Name); err == nil {
		if why := rejectedPods(live); why != "" {
			return fmt.Errorf("%w: %s", catalogue.ErrInconclusive, why)
		}
	}
	return fmt.Errorf("%w: %s", errStuck, c.describe())
}

// rejectedPods returns why the API server rejects the pods of a copy, such as a quota or pod security, or "".
func rejectedPods(copied *appsv1.Deployment) string {
	for _, condition := range copied.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return "a pod of the copy is rejected: " + condition.Message
		}
	}
	return ""
}

// policyError marks rejections by policies of the cluster as inconclusive. Policies return various codes, but all with
// these words.
func policyError(err error) error {
	if rejection := err.Error(); apierrors.IsForbidden(err) || strings.Contains(rejection, "denied the request") || strings.Contains(rejection, "denied request") {
		return fmt.Errorf("%w: %w", catalogue.ErrInconclusive, err)
	}
	return err
}

// rolledOut reports whether all pods of the present template are available, and no others are there. The caches of pods
// and Deployments do not catch up at the same time: an older pod, or none, would then stand for those that are to be
// evicted.
func (c *workloadCopy) rolledOut(generation int64) bool {
	live, err := c.deployments.Deployments(c.namespace).Get(c.deployment.Name)
	if err != nil {
		return false
	}
	want, status := *c.deployment.Spec.Replicas, live.Status
	return live.Generation >= generation && status.ObservedGeneration >= live.Generation &&
		status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want && c.complete(live)
}

// complete reports whether the pods that are there are those of the present template, and all are ready.
func (c *workloadCopy) complete(live *appsv1.Deployment) bool {
	all, want := c.all(), int(*c.deployment.Spec.Replicas)
	return len(all) == want && len(c.running()) == want && !slices.ContainsFunc(all, func(pod *corev1.Pod) bool {
		return !catalogue.PodReady(pod) || pod.Annotations[revisionAnnotation] != live.Spec.Template.Annotations[revisionAnnotation]
	})
}

func (c *workloadCopy) all() []*corev1.Pod {
	pods, err := c.pods.Pods(c.namespace).List(labels.Everything())
	if err != nil {
		return nil // a cache returns no errors
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

func (c *workloadCopy) running() []*corev1.Pod {
	return slices.DeleteFunc(c.all(), func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning
	})
}

// starting reports whether something is still to come: pods that start or terminate, or what the Deployment controller
// of a busy cluster takes longer for than Stuck, a new generation or the status when all pods are there.
func (c *workloadCopy) starting() bool {
	live, err := c.deployments.Deployments(c.namespace).Get(c.deployment.Name)
	if err == nil && (live.Status.ObservedGeneration < live.Generation || c.complete(live)) {
		return true
	}
	return slices.ContainsFunc(c.all(), func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || (pod.Spec.NodeName != "" && !catalogue.PodReady(pod))
	})
}

func (c *workloadCopy) describe() string {
	all := c.all()
	var why []string
	for _, pod := range all {
		if message := catalogue.Unschedulable(pod); message != "" {
			why = append(why, "a pod is not scheduled: "+message)
		}
	}
	slices.Sort(why)
	why = slices.Compact(why)
	run := fmt.Sprintf("%d of %d pods run", len(c.running()), *c.deployment.Spec.Replicas)
	return strings.Join(append([]string{run}, why...), "; ")
}
