// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"maps"

	"github.com/go-logr/logr"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const fieldManager = "authentication-operator"

func get[T client.Object](ctx context.Context, reader client.Reader, key client.ObjectKey, into T) (T, error) {
	var none T
	switch err := reader.Get(ctx, key, into); {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("reading %T %s: %w", into, key, err)
	}
	return into, nil
}

// ensureDeployment writes only if a field of the operator differs: want was derived from live.
func ensureDeployment(ctx context.Context, writer client.Client, live, want *appsv1.Deployment) error {
	switch {
	case live == nil:
		return create(ctx, writer, want)
	case !equality.Semantic.DeepEqual(live, want):
		return update(ctx, writer, want)
	}
	return nil
}

func ensureBudget(ctx context.Context, writer client.Client, live, want *policyv1.PodDisruptionBudget) error {
	switch {
	case want == nil && live == nil:
		return nil
	case want == nil:
		return remove(ctx, writer, live)
	case live == nil:
		return create(ctx, writer, want)
	}
	merged := live.DeepCopy()
	if merged.Labels == nil {
		merged.Labels = map[string]string{}
	}
	maps.Copy(merged.Labels, want.Labels)
	merged.Spec = want.Spec
	if equality.Semantic.DeepEqual(live, merged) {
		return nil
	}
	return update(ctx, writer, merged)
}

// publish merges conditions into the status, read-modify-write, as the stock operator does. The resource version
// prevents that it overwrites writes of others, such as the other reconciler.
func publish(ctx context.Context, writer client.Client, live *operatorv1.Authentication, change func(*operatorv1.AuthenticationStatus)) error {
	authentication := live.DeepCopy()
	change(&authentication.Status)
	if equality.Semantic.DeepEqual(live.Status, authentication.Status) {
		return nil
	}
	if err := writer.Status().Update(ctx, authentication); err != nil {
		return fmt.Errorf("updating the status of Authentication %s: %w", live.Name, err)
	}
	return nil
}

func create(ctx context.Context, writer client.Client, object client.Object) error {
	logr.FromContextOrDiscard(ctx).Info("Creating", "kind", fmt.Sprintf("%T", object), "object", client.ObjectKeyFromObject(object).String())
	if err := writer.Create(ctx, object); err != nil {
		return fmt.Errorf("creating %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

func update(ctx context.Context, writer client.Client, object client.Object) error {
	logr.FromContextOrDiscard(ctx).Info("Updating", "kind", fmt.Sprintf("%T", object), "object", client.ObjectKeyFromObject(object).String())
	if err := writer.Update(ctx, object); err != nil {
		return fmt.Errorf("updating %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// remove deletes this object, but not a later one with its name, or one that is being deleted.
func remove(ctx context.Context, writer client.Client, object client.Object) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	logr.FromContextOrDiscard(ctx).Info("Deleting", "kind", fmt.Sprintf("%T", object), "object", client.ObjectKeyFromObject(object).String())
	uid := object.GetUID()
	err := writer.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("deleting %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
