// SPDX-License-Identifier: Apache-2.0

package disturb

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

// evict evicts every pod of every operand, one after the other.
func (d *Disturber) evict(ctx context.Context) (*catalogue.Disruption, error) {
	return d.disrupt(ctx, "Evicting every pod of every operand", func(ctx context.Context, all []appsv1.Deployment) (map[string]string, error) {
		refused := map[string]string{}
		for i := range all {
			why, err := d.evictPodsOf(ctx, &all[i])
			if err != nil {
				return nil, err
			}
			refused[catalogue.NameOf(&all[i])] = why
		}
		return refused, nil
	})
}

// evictPodsOf retries while a budget refuses, as kubectl drain does, and returns why a pod was not evicted.
func (d *Disturber) evictPodsOf(ctx context.Context, operand *appsv1.Deployment) (why string, err error) {
	state, err := d.read(ctx)
	if err != nil {
		return "", err
	}
	for _, pod := range state.PodsOf(operand) {
		eviction := &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
		}
		var refused error
		granted, err := cluster.Within(ctx, d.Target.Times.Poll, d.Target.Times.Converge, func(ctx context.Context) (bool, error) {
			refused = d.Set.PolicyV1().Evictions(pod.Namespace).Evict(ctx, eviction)
			if apierrors.IsNotFound(refused) || apierrors.IsConflict(refused) {
				refused = nil
			}
			if refused != nil && !apierrors.IsTooManyRequests(refused) {
				return false, refused
			}
			return refused == nil, nil
		})
		if err != nil {
			return "", fmt.Errorf("evict a pod of %s: %w", catalogue.NameOf(operand), err)
		}
		if !granted {
			return cluster.EvictionRefusal(refused), nil
		}
	}
	return "", nil
}
