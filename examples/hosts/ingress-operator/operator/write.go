// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/ingress"
)

const fieldManager = "cluster-ingress-operator"

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

// ensureRouter writes only if a field of the operator differs: want was derived from live.
func (r *reconciler) ensureRouter(ctx context.Context, live, want *appsv1.Deployment) error {
	switch {
	case live == nil:
		return r.create(ctx, want)
	case !equality.Semantic.DeepEqual(live, want):
		return r.update(ctx, want)
	}
	return nil
}

func (r *reconciler) ensureBudget(ctx context.Context, ingressController string, live, want *policyv1.PodDisruptionBudget) error {
	switch {
	case want == nil:
		if live == nil {
			return nil
		}
		return r.delete(ctx, live)
	case live == nil:
		want.Labels = with(want.Labels, owningLabel, ingressController)
		return r.create(ctx, want)
	}
	merged := live.DeepCopy()
	merged.Labels = with(merged.Labels, owningLabel, ingressController)
	merged.Spec = want.Spec
	if equality.Semantic.DeepEqual(live, merged) {
		return nil
	}
	return r.update(ctx, merged)
}

// ensureStatus replaces the whole status, read-modify-write, as the stock operator does. The resource version prevents
// that it overwrites writes of others.
func (r *reconciler) ensureStatus(ctx context.Context, live *operatorv1.IngressController, want operatorv1.IngressControllerStatus) error {
	if equality.Semantic.DeepEqual(live.Status, want) {
		return nil
	}
	ic := live.DeepCopy()
	ic.Status = want
	if err := r.client.Status().Update(ctx, ic); err != nil {
		return fmt.Errorf("updating the status of IngressController %s: %w", client.ObjectKeyFromObject(live), err)
	}
	return nil
}

// remove deletes the objects of an IngressController that is deleted or being deleted, and reports whether none is
// left.
func (r *reconciler) remove(ctx context.Context, ingressController string) (gone bool, err error) {
	key := client.ObjectKey{Namespace: ingress.RouterNamespace, Name: routerName(ingressController)}
	router, err := get(ctx, r.client, key, &appsv1.Deployment{})
	if err != nil {
		return false, err
	}
	budget, err := get(ctx, r.client, key, &policyv1.PodDisruptionBudget{})
	if err != nil {
		return false, err
	}
	if router != nil {
		if err := r.delete(ctx, router); err != nil {
			return false, err
		}
	}
	if budget != nil {
		return false, r.delete(ctx, budget)
	}
	return router == nil, nil
}

func (r *reconciler) create(ctx context.Context, object client.Object) error {
	logr.FromContextOrDiscard(ctx).Info("Creating", "kind", fmt.Sprintf("%T", object), "object", client.ObjectKeyFromObject(object).String())
	if err := r.client.Create(ctx, object); err != nil {
		return fmt.Errorf("creating %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

func (r *reconciler) update(ctx context.Context, object client.Object) error {
	logr.FromContextOrDiscard(ctx).Info("Updating", "kind", fmt.Sprintf("%T", object), "object", client.ObjectKeyFromObject(object).String())
	if err := r.client.Update(ctx, object); err != nil {
		return fmt.Errorf("updating %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// delete deletes this object, but not a later one with its name, or one that is being deleted.
func (r *reconciler) delete(ctx context.Context, object client.Object) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	logr.FromContextOrDiscard(ctx).Info("Deleting", "kind", fmt.Sprintf("%T", object), "object", client.ObjectKeyFromObject(object).String())
	uid := object.GetUID()
	err := r.client.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("deleting %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
