// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// rolloutAnnotation is what kubectl rollout restart writes.
const rolloutAnnotation = "kubectl.kubernetes.io/restartedAt"

// Disruption is the result of a disruption of all operands.
type Disruption struct{ Operands []OperandDisruption }

// OperandDisruption is the result for one Deployment.
type OperandDisruption struct {
	Name string
	// Failure is why it did not recover; empty if it did.
	Failure string
	// Downtime is the time without an available pod, in seconds.
	Downtime float64
}

func (d *Disruption) copied() *Disruption {
	if d == nil {
		return nil
	}
	return &Disruption{Operands: slices.Clone(d.Operands)}
}

func operands(s *State) []appsv1.Deployment {
	var all []appsv1.Deployment
	for _, w := range slices.Concat(routers(), consoles(), oauths()) {
		if d := s.Deployment(w.namespace, w.name); d != nil && replicas(d) > 0 {
			all = append(all, *d)
		}
	}
	return all
}

// Roll restarts the rollouts of all operands at the same time, then removes the annotation with a second rollout.
func (d *Disruptor) Roll(ctx context.Context) (*Disruption, error) {
	if d.Results.Rollout == nil {
		c := d.cluster
		now := time.Now().UTC().Format(time.RFC3339Nano)
		there, err := c.disturb(ctx, "Rolling out every operand", func(ctx context.Context, all []appsv1.Deployment) (map[string]string, error) {
			return nil, c.annotateTemplates(ctx, all, func(*appsv1.Deployment) *string { return &now })
		})
		back, undone := c.revertRollout(ctx, there)
		if err := errors.Join(err, undone); err != nil {
			return nil, err
		}
		d.Results.Rollout = there.and(back)
	}
	return d.Results.Rollout, nil
}

// revertRollout restores the annotations of the pod templates. It does not wait for operands whose rollout failed, and
// after an interruption for none.
func (c *targetCluster) revertRollout(ctx context.Context, rolled *Disruption) (*Disruption, error) {
	before := func(d *appsv1.Deployment) *string {
		if was := c.before.Deployment(d.Namespace, d.Name); was != nil {
			if value, had := was.Spec.Template.Annotations[rolloutAnnotation]; had {
				return &value
			}
		}
		return nil
	}
	if interrupted := ctx.Err(); interrupted != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.target.Times.Cleanup)
		defer cancel()
		return nil, errors.Join(interrupted, c.annotateTemplates(ctx, operands(c.before), before))
	}
	return c.disturb(ctx, "Removing the annotation of the rollouts", func(ctx context.Context, all []appsv1.Deployment) (map[string]string, error) {
		return rolled.failures(), c.annotateTemplates(ctx, all, before)
	})
}

func (c *targetCluster) annotateTemplates(ctx context.Context, all []appsv1.Deployment, value func(*appsv1.Deployment) *string) error {
	for i := range all {
		body, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]*string{rolloutAnnotation: value(&all[i])}},
		}}})
		if err != nil {
			return err
		}
		_, err = c.set.AppsV1().Deployments(all[i].Namespace).Patch(ctx, all[i].Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "kubectl-rollout"})
		if err != nil {
			return fmt.Errorf("roll out %s: %w", nameOf(&all[i]), err)
		}
	}
	return nil
}

// and merges the results of a second disruption of the same Deployments: the first failure, the longer downtime.
func (d *Disruption) and(another *Disruption) *Disruption {
	both := d.copied()
	for _, o := range another.Operands {
		i := slices.IndexFunc(both.Operands, func(b OperandDisruption) bool { return b.Name == o.Name })
		if i < 0 {
			both.Operands = append(both.Operands, o)
			continue
		}
		both.Operands[i].Failure = first(both.Operands[i].Failure, o.Failure)
		both.Operands[i].Downtime = max(both.Operands[i].Downtime, o.Downtime)
	}
	return both
}

// Evict evicts every pod of every operand, one after the other.
func (d *Disruptor) Evict(ctx context.Context) (*Disruption, error) {
	if d.Results.Eviction == nil {
		disruption, err := d.cluster.disturb(ctx, "Evicting every pod of every operand", func(ctx context.Context, all []appsv1.Deployment) (map[string]string, error) {
			refused := map[string]string{}
			for i := range all {
				why, err := d.cluster.evictAll(ctx, &all[i])
				if err != nil {
					return nil, err
				}
				if why != "" {
					refused[nameOf(&all[i])] = why
				}
			}
			return refused, nil
		})
		if err != nil {
			return nil, err
		}
		d.Results.Eviction = disruption
	}
	return d.Results.Eviction, nil
}

// evictAll retries while a budget refuses, as kubectl drain does, and returns why a pod was not evicted.
func (c *targetCluster) evictAll(ctx context.Context, d *appsv1.Deployment) (why string, err error) {
	state, err := c.read(ctx)
	if err != nil {
		return "", err
	}
	for _, pod := range state.podsOf(d) {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}}
		var refused error
		granted, err := withinBackoff(ctx, c.target.Times.Poll, c.target.Times.Converge, func(ctx context.Context) (bool, error) {
			refused = c.set.PolicyV1().Evictions(pod.Namespace).Evict(ctx, eviction)
			if apierrors.IsNotFound(refused) || apierrors.IsConflict(refused) {
				refused = nil
			}
			if refused != nil && !apierrors.IsTooManyRequests(refused) {
				return false, refused
			}
			return refused == nil, nil
		})
		if err != nil {
			return "", fmt.Errorf("evict a pod of %s: %w", nameOf(d), err)
		}
		if !granted {
			return reasonOf(refused), nil
		}
	}
	return "", nil
}

func (d *Disruption) failures() map[string]string {
	all := map[string]string{}
	if d != nil {
		for _, o := range d.Operands {
			if o.Failure != "" {
				all[o.Name] = o.Failure
			}
		}
	}
	return all
}

// disturb calls do and waits until all operands are available. It does not wait for those for which do returns a
// failure.
func (c *targetCluster) disturb(ctx context.Context, what string, do func(context.Context, []appsv1.Deployment) (map[string]string, error)) (*Disruption, error) {
	c.progressf("%s", what)
	state, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	all := operands(state)
	watching, err := watchAvailability(ctx, c.set, all, c.target.Times.Poll)
	if err != nil {
		return nil, err
	}
	defer watching.stop()
	refused, err := do(ctx, all)
	if err != nil {
		return nil, err
	}
	wrong := map[string]string{}
	var unread error
	_, err = within(ctx, c.target.Times.Poll, c.target.Times.Settle, func(ctx context.Context) (bool, error) {
		state, err := c.read(ctx)
		if ctx.Err() == nil { // an API server on a disturbed node can fail again
			unread = err
		}
		switch {
		case errors.Is(err, ErrForbidden):
			return false, err
		case err != nil:
			return false, nil
		}
		clear(wrong)
		for i := range all {
			if why := unsettled(state, all[i].Namespace, all[i].Name); why != "" && refused[nameOf(&all[i])] == "" {
				wrong[nameOf(&all[i])] = why
			}
		}
		return len(wrong) == 0, nil
	})
	if err := errors.Join(err, unread); err != nil {
		return nil, err
	}
	d := &Disruption{}
	for i := range all {
		name := nameOf(&all[i])
		d.Operands = append(d.Operands, OperandDisruption{Name: name, Failure: first(refused[name], wrong[name]), Downtime: watching.away(name)})
	}
	return d, nil
}

func (c *targetCluster) waitAvailable(ctx context.Context) error {
	_, err := within(ctx, c.target.Times.Poll, c.target.Times.Settle, func(ctx context.Context) (bool, error) {
		state, err := c.read(ctx)
		return err == nil && c.unavailableDeployment(state) == "", err
	})
	return err
}

// unsettled returns why a rollout is not complete, or "".
func unsettled(s *State, namespace, name string) string {
	d := s.Deployment(namespace, name)
	if d == nil {
		return "it does not exist"
	}
	want, status := replicas(d), d.Status
	if status.ObservedGeneration >= d.Generation && status.Replicas == want && status.UpdatedReplicas == want && status.AvailableReplicas == want {
		return ""
	}
	for _, pod := range s.podsOf(d) {
		if why := unschedulable(&pod); why != "" {
			return fmt.Sprintf("%d of %d pods are available; a pod is not scheduled: %s", status.AvailableReplicas, want, why)
		}
	}
	return fmt.Sprintf("%d of %d pods are available, %d of them of the current template", status.AvailableReplicas, want, status.UpdatedReplicas)
}
