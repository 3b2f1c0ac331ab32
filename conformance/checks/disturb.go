package checks

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// rolloutAnnotation is kubectl's own.
const rolloutAnnotation = "kubectl.kubernetes.io/restartedAt"

// Disturbance is what became of Deployments.
type Disturbance struct{ Operands []Disturbed }

// Disturbed is one of them.
type Disturbed struct {
	Name string
	// Wrong says why it did not come back; empty when it did.
	Wrong string
	// Away is for how long not a single pod was available, in seconds.
	Away float64
}

func (d *Disturbance) copied() *Disturbance {
	if d == nil {
		return nil
	}
	return &Disturbance{Operands: slices.Clone(d.Operands)}
}

// operands are the Deployments of the modules that have pods.
func operands(s *State) []appsv1.Deployment {
	var all []appsv1.Deployment
	for _, w := range slices.Concat(routers(), consoles(), oauths()) {
		if d := s.Deployment(w.namespace, w.name); d != nil && replicas(d) > 0 {
			all = append(all, *d)
		}
	}
	return all
}

// Roll has every operand roll out anew, all at the same time.
func (s *Story) Roll(ctx context.Context) (*Disturbance, error) {
	if s.Told.Rolled == nil {
		d, err := s.cluster.disturb(ctx, "Rolling every operand out", func(ctx context.Context, all []appsv1.Deployment) (map[string]string, error) {
			body := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, rolloutAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
			for i := range all {
				_, err := s.cluster.set.AppsV1().Deployments(all[i].Namespace).Patch(ctx, all[i].Name, types.StrategicMergePatchType, body, metav1.PatchOptions{FieldManager: "kubectl-rollout"})
				if err != nil {
					return nil, fmt.Errorf("roll %s: %w", nameOf(&all[i]), err)
				}
			}
			return nil, nil
		})
		if err != nil {
			return nil, err
		}
		s.Told.Rolled = d
	}
	return s.Told.Rolled, nil
}

// Evict has every pod of every operand evicted, one after the other.
func (s *Story) Evict(ctx context.Context) (*Disturbance, error) {
	if s.Told.Evicted == nil {
		d, err := s.cluster.disturb(ctx, "Evicting every pod of every operand", func(ctx context.Context, all []appsv1.Deployment) (map[string]string, error) {
			refused := map[string]string{}
			for i := range all {
				why, err := s.cluster.evictAll(ctx, &all[i])
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
		s.Told.Evicted = d
	}
	return s.Told.Evicted, nil
}

// evictAll asks again while a budget refuses, as kubectl drain does, and says why a pod could not be evicted in the end.
func (c *theatre) evictAll(ctx context.Context, d *appsv1.Deployment) (why string, err error) {
	state, err := c.read(ctx)
	if err != nil {
		return "", err
	}
	for _, pod := range state.podsOf(d) {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}}
		var refused error
		granted, err := backingOff(ctx, c.target.Times.Poll, c.target.Times.Converge, func(ctx context.Context) (bool, error) {
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

// Restart restarts every node, one after the other.
func (s *Story) Restart(ctx context.Context) (*Disturbance, error) {
	if s.Told.Restarted == nil {
		d, err := s.cluster.disturb(ctx, "Restarting every node", func(ctx context.Context, _ []appsv1.Deployment) (map[string]string, error) {
			for _, node := range s.cluster.before.Nodes {
				if err := s.cluster.target.RestartNode(ctx, node.Name); err != nil {
					return nil, fmt.Errorf("restart node %s: %w", node.Name, err)
				}
			}
			return nil, nil
		})
		if err != nil {
			return nil, err
		}
		s.Told.Restarted = d
	}
	return s.Told.Restarted, nil
}

// disturb does something to the operands and waits until each of them is whole again. What do returns is what is wrong with some of them already.
func (c *theatre) disturb(ctx context.Context, what string, do func(context.Context, []appsv1.Deployment) (map[string]string, error)) (*Disturbance, error) {
	c.say("%s", what)
	state, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	all := operands(state)
	watching, err := watchAvailability(ctx, c.set, all)
	if err != nil {
		return nil, err
	}
	defer watching.stop()
	refused, err := do(ctx, all)
	if err != nil {
		return nil, err
	}
	wrong := map[string]string{}
	_, err = within(ctx, c.target.Times.Poll, c.target.Times.Settle, func(ctx context.Context) (bool, error) {
		state, err := c.read(ctx)
		if err != nil {
			return false, err
		}
		clear(wrong)
		for i := range all {
			if why := unsettled(state, all[i].Namespace, all[i].Name); why != "" {
				wrong[nameOf(&all[i])] = why
			}
		}
		return len(wrong) == 0, nil
	})
	if err != nil {
		return nil, err
	}
	d := &Disturbance{}
	for i := range all {
		name := nameOf(&all[i])
		d.Operands = append(d.Operands, Disturbed{Name: name, Wrong: first(refused[name], wrong[name]), Away: watching.away(name)})
	}
	return d, nil
}

// whole waits until everything is whole that was before, or as long as it may take.
func (c *theatre) whole(ctx context.Context) error {
	_, err := within(ctx, c.target.Times.Poll, c.target.Times.Settle, func(ctx context.Context) (bool, error) {
		state, err := c.read(ctx)
		return err == nil && c.notWhole(state) == "", err
	})
	return err
}

// unsettled says why a Deployment is not whole: all its pods, and no others, are of the newest template and ready.
func unsettled(s *State, namespace, name string) string {
	d := s.Deployment(namespace, name)
	if d == nil {
		return "there is none"
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
	return fmt.Sprintf("%d of %d pods are available, %d of them of the newest template", status.AvailableReplicas, want, status.UpdatedReplicas)
}
