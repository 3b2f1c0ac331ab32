// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const fieldManager = "machine-config-operator"

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

// annotate writes an annotation that differs, and changes the node in memory.
func annotate(ctx context.Context, writer client.Client, node *corev1.Node, key, value string) error {
	if node.Annotations[key] == value {
		return nil
	}
	patch := client.MergeFrom(node.DeepCopy())
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[key] = value
	if err := client.IgnoreNotFound(writer.Patch(ctx, node, patch)); err != nil {
		return fmt.Errorf("writing annotation %s of node %s: %w", key, node.Name, err)
	}
	return nil
}

// publish merges conditions into the status. A time changes only with its status. The resource version
// prevents that it overwrites writes of others, such as the other reconciler.
func publish(ctx context.Context, writer client.Client, live *operatorv1.MachineConfiguration, conditions []metav1.Condition) error {
	changed := live.DeepCopy()
	different := false
	for _, c := range conditions {
		different = meta.SetStatusCondition(&changed.Status.Conditions, c) || different
	}
	if !different {
		return nil
	}
	// The typed object would set more fields.
	if err := writer.Status().Patch(ctx, changed, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patching the status of MachineConfiguration %s: %w", live.Name, err)
	}
	return nil
}

func create(ctx context.Context, writer client.Client, object client.Object) error {
	logr.FromContextOrDiscard(ctx).Info("Creating", "kind", fmt.Sprintf("%T", object), "object", object.GetName())
	if err := writer.Create(ctx, object); err != nil {
		return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

func update(ctx context.Context, writer client.Client, object client.Object) error {
	logr.FromContextOrDiscard(ctx).Info("Updating", "kind", fmt.Sprintf("%T", object), "object", object.GetName())
	if err := writer.Update(ctx, object); err != nil {
		return fmt.Errorf("updating %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

// remove deletes this object, but not a later one with its name.
func remove(ctx context.Context, writer client.Client, object client.Object) error {
	logr.FromContextOrDiscard(ctx).Info("Deleting", "kind", fmt.Sprintf("%T", object), "object", object.GetName())
	uid := object.GetUID()
	if err := client.IgnoreNotFound(writer.Delete(ctx, object, client.Preconditions{UID: &uid})); err != nil {
		return fmt.Errorf("deleting %T %s: %w", object, object.GetName(), err)
	}
	return nil
}
