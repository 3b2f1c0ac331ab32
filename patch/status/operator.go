// SPDX-License-Identifier: Apache-2.0

// Package status reports the state of a patch as conditions on the operator's resource, events and metrics.
package status

import (
	"context"
	"fmt"
	"slices"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// Sink writes conditions.
type Sink interface {
	// Publish writes the conditions to the target as it was read. It returns when to call again, 0 for never.
	Publish(ctx context.Context, target *unstructured.Unstructured, conditions []operatorv1.OperatorCondition) (time.Duration, error)
}

// None writes nothing.
type None struct{}

// Publish implements Sink.
func (None) Publish(context.Context, *unstructured.Unstructured, []operatorv1.OperatorCondition) (time.Duration, error) {
	return 0, nil
}

// ReassertInterval is the least time between two writes of equal conditions. An operator that writes its whole status
// removes them (U-SSA-9); they are restored, but not in a loop (R-SNO-9).
const ReassertInterval = 2 * time.Minute

// OperatorConditions applies conditions to status.conditions of the target under the module's field owner. They must be
// a list map, as in operator.openshift.io. It is not safe for concurrent use.
type OperatorConditions struct {
	Client client.Client
	Module string
	Now    func() time.Time // nil for time.Now

	last written
}

// written holds the conditions, without times, that were last written to an object.
type written struct {
	uid        types.UID
	conditions []operatorv1.OperatorCondition
	at         time.Time
}

type withConditions struct {
	Status struct {
		Conditions []operatorv1.OperatorCondition `json:"conditions"`
	} `json:"status"`
}

// Publish implements Sink. A deleted target is no error.
func (o *OperatorConditions) Publish(
	ctx context.Context, target *unstructured.Unstructured, conditions []operatorv1.OperatorCondition,
) (time.Duration, error) {
	if target == nil {
		return 0, nil
	}
	live, err := Conditions(target)
	if err != nil {
		return 0, err
	}
	now := timeOf(o.Now)
	untimed := slices.Clone(conditions)
	for i := range conditions {
		untimed[i].LastTransitionTime = metav1.Time{}
		conditions[i].LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		for _, c := range live {
			if c.Type == conditions[i].Type && c.Status == conditions[i].Status {
				conditions[i].LastTransitionTime = c.LastTransitionTime
			}
		}
	}
	intended := withConditions{}
	intended.Status.Conditions = conditions
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&intended)
	if err != nil {
		return 0, fmt.Errorf("encoding conditions: %w", err)
	}
	intent := &unstructured.Unstructured{Object: content}
	intent.SetGroupVersionKind(target.GroupVersionKind())
	intent.SetNamespace(target.GetNamespace())
	intent.SetName(target.GetName())
	intent.SetUID(target.GetUID())
	owner := patch.FieldOwner(o.Module)
	own, err := ownership.Applied(target, owner, "status")
	if err != nil {
		return 0, err
	}
	if ownership.UpToDate(target.Object, intent.Object, own) {
		return 0, nil
	}

	if o.last.uid == target.GetUID() && slices.Equal(o.last.conditions, untimed) {
		if wait := o.last.at.Add(ReassertInterval).Sub(now); wait > 0 {
			return wait, nil
		}
	}
	// No other client uses condition types with the prefix.
	err = o.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(intent), client.FieldOwner(owner), client.ForceOwnership)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("writing conditions of %s %s: %w", target.GetKind(), client.ObjectKeyFromObject(target), err)
	}
	o.last = written{target.GetUID(), untimed, now}
	return 0, nil
}

// Conditions returns status.conditions of an operator's resource.
func Conditions(target *unstructured.Unstructured) ([]operatorv1.OperatorCondition, error) {
	var has withConditions
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(target.Object, &has); err != nil {
		return nil, fmt.Errorf("reading status.conditions of %s %s: %w", target.GetKind(), client.ObjectKeyFromObject(target), err)
	}
	return has.Status.Conditions, nil
}
