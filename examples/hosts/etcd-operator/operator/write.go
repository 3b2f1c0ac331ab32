// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	operatorv1 "github.com/openshift/api/operator/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const fieldManager = "etcd-operator"

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

// ensureBudget writes only if the budget differs.
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
	merged.Spec = want.Spec
	if equality.Semantic.DeepEqual(live, merged) {
		return nil
	}
	logr.FromContextOrDiscard(ctx).Info("Updating", "kind", fmt.Sprintf("%T", merged), "object", client.ObjectKeyFromObject(merged).String())
	if err := writer.Update(ctx, merged); err != nil {
		return fmt.Errorf("updating %T %s: %w", merged, client.ObjectKeyFromObject(merged), err)
	}
	return nil
}

// publish merges conditions into the status, read-modify-write, as the stock operator does. The resource version
// prevents that it overwrites writes of others, such as the other reconciler.
func publish(ctx context.Context, writer client.Client, live *operatorv1.Etcd, conditions []operatorv1.OperatorCondition) error {
	changed := live.DeepCopy()
	changed.Status.Conditions = merged(changed.Status.Conditions, conditions)
	if equality.Semantic.DeepEqual(live.Status, changed.Status) {
		return nil
	}
	if err := writer.Status().Update(ctx, changed); err != nil {
		return fmt.Errorf("updating the status of Etcd %s: %w", live.Name, err)
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

// remove deletes this object, but not a later one with its name, or one that is being deleted.
func remove(ctx context.Context, writer client.Client, object client.Object) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	logr.FromContextOrDiscard(ctx).Info("Deleting", "kind", fmt.Sprintf("%T", object), "object", client.ObjectKeyFromObject(object).String())
	uid := object.GetUID()
	if err := client.IgnoreNotFound(writer.Delete(ctx, object, client.Preconditions{UID: &uid})); err != nil {
		return fmt.Errorf("deleting %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
