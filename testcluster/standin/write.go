// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Get returns an object, or nil if there is none.
func Get[T client.Object](ctx context.Context, reader client.Reader, namespace, name string, into T) (T, error) {
	var none T
	key := client.ObjectKey{Namespace: namespace, Name: name}
	switch err := reader.Get(ctx, key, into); {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("reading %T %s: %w", into, key, err)
	}
	return into, nil
}

// Ensure creates an object, or updates it if it differs. want was derived from the live object, so that defaults of the
// API server are no difference.
func Ensure[T client.Object](ctx context.Context, writer client.Writer, live, want T) error {
	switch {
	case reflect.ValueOf(live).IsNil():
		return Create(ctx, writer, want)
	case equality.Semantic.DeepEqual(live, want):
		return nil
	}
	return Update(ctx, writer, want)
}

// EnsureBudget makes a budget as wanted, without deleting labels of others. A nil one is deleted.
func EnsureBudget(ctx context.Context, writer client.Writer, live, want *policyv1.PodDisruptionBudget) error {
	switch {
	case want == nil && live == nil:
		return nil
	case want == nil:
		return Delete(ctx, writer, live)
	case live == nil:
		return Create(ctx, writer, want)
	}
	merged := live.DeepCopy()
	merged.Labels = With(live.Labels, want.Labels)
	merged.Spec = want.Spec
	return Ensure(ctx, writer, live, merged)
}

// Budget returns the stock operators' budget of pods with these labels.
func Budget(namespace, name string, labels map[string]string, maxUnavailable intstr.IntOrString) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             &maxUnavailable,
			Selector:                   &metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}
}

// RollingUpdate returns a strategy.
func RollingUpdate(maxUnavailable, maxSurge intstr.IntOrString) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &maxUnavailable, MaxSurge: &maxSurge},
	}
}

// With returns a copy of a map with the members of another one.
func With(present, members map[string]string) map[string]string {
	if len(members) == 0 {
		return present
	}
	out := maps.Clone(present)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, members)
	return out
}

// Create creates an object.
func Create(ctx context.Context, writer client.Writer, object client.Object) error {
	log(ctx, "Creating", object)
	if err := writer.Create(ctx, object); err != nil {
		return fmt.Errorf("creating %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// Update updates an object. Its resource version prevents that it overwrites writes of others.
func Update(ctx context.Context, writer client.Writer, object client.Object) error {
	log(ctx, "Updating", object)
	if err := writer.Update(ctx, object); err != nil {
		return fmt.Errorf("updating %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// UpdateStatus updates the status if it differs, read-modify-write as the operators do.
func UpdateStatus(ctx context.Context, writer client.StatusClient, live, changed client.Object) error {
	if equality.Semantic.DeepEqual(live, changed) {
		return nil
	}
	if err := writer.Status().Update(ctx, changed); err != nil {
		return fmt.Errorf("updating the status of %T %s: %w", live, client.ObjectKeyFromObject(live), err)
	}
	return nil
}

// Delete deletes this object, but not a later one with its name, or one that is being deleted.
func Delete(ctx context.Context, writer client.Writer, object client.Object) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	log(ctx, "Deleting", object)
	uid := object.GetUID()
	err := writer.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

func log(ctx context.Context, verb string, object client.Object) {
	logr.FromContextOrDiscard(ctx).Info(verb, "kind", fmt.Sprintf("%T", object), "object", client.ObjectKeyFromObject(object).String())
}

// OnlyStale reports whether an error says only that the cache was stale.
func OnlyStale(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			if !OnlyStale(err) {
				return false
			}
		}
		return true
	}
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}
