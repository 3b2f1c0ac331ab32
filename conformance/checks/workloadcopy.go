package checks

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
)

// traveller is one copy on its way.
type traveller struct {
	*WorkloadCopier
	shape
	namespace string
	feed      *feed
}

// begin finds or makes a namespace.
func (l *WorkloadCopier) begin(ctx context.Context, s shape) (*traveller, error) {
	t := &traveller{WorkloadCopier: l, shape: s, feed: &feed{changed: make(chan struct{}, 1)}}
	l.mu.Lock()
	if n := len(l.free); n > 0 {
		t.namespace, l.free = l.free[n-1], l.free[:n-1]
		l.feeds[t.namespace] = t.feed
	}
	l.mu.Unlock()
	if t.namespace != "" {
		return t, nil
	}
	namespace, err := l.kube.CoreV1().Namespaces().Create(ctx, copyNamespace(l.run), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create a namespace for a copy of %s: %w", s.deployment.Name, refused(err))
	}
	t.namespace = namespace.Name
	l.mu.Lock()
	l.feeds[t.namespace] = t.feed
	l.mu.Unlock()
	err = wait.PollUntilContextTimeout(ctx, l.times.Poll, l.times.Ready, true, func(ctx context.Context) (bool, error) {
		_, err := l.kube.CoreV1().ServiceAccounts(t.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the service account of namespace %s: %w", t.namespace, err)
	}
	return t, nil
}

// end takes the copy away and frees its namespace. One that does not come free, as after an interruption, is left to close.
func (t *traveller) end(ctx context.Context) {
	if t.clear(ctx) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.feeds, t.namespace)
	t.free = append(t.free, t.namespace)
}

func (t *traveller) clear(ctx context.Context) error {
	for i := range t.budgets {
		err := t.kube.PolicyV1().PodDisruptionBudgets(t.namespace).Delete(ctx, t.budgets[i].Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	err := t.kube.AppsV1().Deployments(t.namespace).Delete(ctx, t.deployment.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return t.until(ctx, func() bool {
		_, err := t.deployments.Deployments(t.namespace).Get(t.deployment.Name)
		return len(t.all()) == 0 && apierrors.IsNotFound(err)
	})
}

func (t *traveller) deploy(ctx context.Context) error {
	for i := range t.budgets {
		if _, err := t.kube.PolicyV1().PodDisruptionBudgets(t.namespace).Create(ctx, &t.budgets[i], metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("copy PodDisruptionBudget %s: %w", t.budgets[i].Name, refused(err))
		}
	}
	made, err := t.kube.AppsV1().Deployments(t.namespace).Create(ctx, t.deployment, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("copy Deployment %s: %w", t.deployment.Name, refused(err))
	}
	return t.until(ctx, func() bool { return t.rolledOut(made.Generation) })
}

func (t *traveller) roll(ctx context.Context) error {
	body := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:"2"}}}}}`, revisionAnnotation)
	rolled, err := t.kube.AppsV1().Deployments(t.namespace).Patch(ctx, t.deployment.Name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("roll the copy of %s: %w", t.deployment.Name, refused(err))
	}
	return t.until(ctx, func() bool { return t.rolledOut(rolled.Generation) })
}

// evict asks for the eviction of every pod, one after the other, and again while a budget refuses.
func (t *traveller) evict(ctx context.Context) error {
	for _, pod := range t.running() {
		var answer error
		granted, err := backingOff(ctx, t.times.Poll, t.times.Stuck, func(ctx context.Context) (bool, error) {
			err := t.kube.PolicyV1().Evictions(t.namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: pod.Name}})
			if ctx.Err() == nil || answer == nil { // that the time is over is no answer
				answer = err
			}
			return err == nil || apierrors.IsNotFound(err), nil
		})
		if err != nil {
			return fmt.Errorf("evict a pod of the copy of %s: %w", t.deployment.Name, err)
		}
		if !granted {
			if said := refused(answer); errors.Is(said, ErrInconclusive) {
				return fmt.Errorf("evict a pod of the copy of %s: %w", t.deployment.Name, said)
			}
			return fmt.Errorf("%w: %s", errStuck, reasonOf(answer))
		}
		if err := t.replaced(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// reasonOf leaves out names that change from run to run.
func reasonOf(refused error) string {
	if apierrors.IsTooManyRequests(refused) {
		return "the eviction is refused: it would violate the pod's disruption budget"
	}
	return "the eviction fails: " + fmt.Sprint(refused)
}

// deletions is how often the only pod is deleted: one that has found its way back once may have been lucky. Of several each is deleted once.
const deletions = 3

func (t *traveller) delete(ctx context.Context, j *CopyResult) error {
	pods := t.running()
	for _, pod := range pods {
		j.InitialNodes = append(j.InitialNodes, pod.Spec.NodeName)
	}
	rounds := 1
	if len(pods) == 1 {
		rounds = deletions
	}
	for range rounds {
		for _, pod := range t.running() {
			if err := t.kube.CoreV1().Pods(t.namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete a pod of the copy of %s: %w", t.deployment.Name, err)
			}
			if err := t.replaced(ctx, pod); err != nil {
				return err
			}
		}
		for _, pod := range t.running() {
			j.NodesAfterDeletion = append(j.NodesAfterDeletion, pod.Spec.NodeName)
		}
	}
	return nil
}

// replaced waits until a pod is gone and the copy is whole again.
func (t *traveller) replaced(ctx context.Context, old *corev1.Pod) error {
	return t.until(ctx, func() bool {
		for _, pod := range t.all() {
			if pod.UID == old.UID {
				return false
			}
		}
		return t.rolledOut(0) && len(t.running()) == int(*t.deployment.Spec.Replicas)
	})
}

// until looks whenever something has changed, until done, or until nothing has changed for a while although nothing is on its way.
func (t *traveller) until(ctx context.Context, done func() bool) error {
	limit := time.NewTimer(t.times.Ready)
	defer limit.Stop()
	for {
		if done() {
			return nil
		}
		quiet := time.NewTimer(t.times.Stuck)
		select {
		case <-t.feed.changed:
			quiet.Stop()
		case <-quiet.C:
			if done() { // the last of what it waited for may be something that no watch tells of
				return nil
			}
			if !t.starting() {
				return t.stuck()
			}
		case <-limit.C:
			quiet.Stop()
			return t.stuck()
		case <-ctx.Done():
			quiet.Stop()
			return ctx.Err()
		}
	}
}

// stuck is a finding about the copy, unless something else keeps it from getting on.
func (t *traveller) stuck() error {
	for _, pod := range t.all() {
		if why := imageTrouble(pod); why != "" {
			err := fmt.Errorf("%w: %s", ErrInconclusive, why)
			t.mu.Lock()
			t.unusable = err
			t.mu.Unlock()
			return err
		}
	}
	if live, err := t.deployments.Deployments(t.namespace).Get(t.deployment.Name); err == nil {
		if why := podsRefused(live); why != "" {
			return fmt.Errorf("%w: %s", ErrInconclusive, why)
		}
	}
	return fmt.Errorf("%w: %s", errStuck, t.describe())
}

// podsRefused is what the API server says where it does not take the pods of a copy: a quota, pod security, a policy of the cluster.
func podsRefused(copied *appsv1.Deployment) string {
	for _, condition := range copied.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return "a pod of the copy is refused: " + condition.Message
		}
	}
	return ""
}

// refused names the cluster's policy as what hinders, where that is why a request was refused. Policies answer with various codes, but all with these words.
func refused(err error) error {
	if said := err.Error(); apierrors.IsForbidden(err) || strings.Contains(said, "denied the request") || strings.Contains(said, "denied request") {
		return fmt.Errorf("%w: %w", ErrInconclusive, err)
	}
	return err
}

func (t *traveller) rolledOut(generation int64) bool {
	live, err := t.deployments.Deployments(t.namespace).Get(t.deployment.Name)
	if err != nil {
		return false
	}
	want, status := *t.deployment.Spec.Replicas, live.Status
	return live.Generation >= generation && status.ObservedGeneration >= live.Generation &&
		status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want && len(t.all()) == int(want)
}

func (t *traveller) all() []*corev1.Pod {
	pods, err := t.pods.Pods(t.namespace).List(labels.Everything())
	if err != nil {
		return nil // a cache has no errors
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

func (t *traveller) running() []*corev1.Pod {
	return slices.DeleteFunc(t.all(), func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning
	})
}

// starting says that a kubelet has a pod that is not ready yet, or that one is ending: that takes its time.
func (t *traveller) starting() bool {
	return slices.ContainsFunc(t.all(), func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || (pod.Spec.NodeName != "" && !podReady(pod))
	})
}

// describe says what holds up the copy, without names that change.
func (t *traveller) describe() string {
	all := t.all()
	var why []string
	for _, pod := range all {
		if message := unschedulable(pod); message != "" {
			why = append(why, "a pod is not scheduled: "+message)
		}
	}
	slices.Sort(why)
	why = slices.Compact(why)
	if len(why) == 0 {
		return fmt.Sprintf("%d of %d pods run", len(t.running()), *t.deployment.Spec.Replicas)
	}
	return fmt.Sprintf("%d of %d pods run; %s", len(t.running()), *t.deployment.Spec.Replicas, strings.Join(why, "; "))
}
