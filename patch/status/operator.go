package status

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// Sink is where sub-conditions are shown.
type Sink interface {
	// Show makes the conditions visible on the target, which is the operator's own resource as it was read. It returns
	// when to call again, 0 for not before something changes.
	Show(ctx context.Context, target *unstructured.Unstructured, conditions []operatorv1.OperatorCondition) (time.Duration, error)
}

// None shows nothing.
type None struct{}

// Show implements Sink.
func (None) Show(context.Context, *unstructured.Unstructured, []operatorv1.OperatorCondition) (time.Duration, error) {
	return 0, nil
}

// ReassertPause is the least time between two writes of the same conditions. An operator that rewrites its whole status
// drops ours (U-SSA-9); they come back, but not in a race (R-SNO-9).
const ReassertPause = 2 * time.Minute

// OperatorConditions writes sub-conditions into status.conditions of the target by server-side apply, under the module's own
// field owner. status.conditions must be a list map by type, as in every operator.openshift.io resource, so that the
// conditions of others are not touched.
type OperatorConditions struct {
	Client client.Client
	Module string
	// Clock is the time; nil for the real one.
	Clock clock.PassiveClock

	mu   sync.Mutex
	last map[types.UID]written
}

type written struct {
	text string
	at   time.Time
}

// Show implements Sink. A target that is gone is no error: there is nobody to tell.
func (o *OperatorConditions) Show(ctx context.Context, target *unstructured.Unstructured, conditions []operatorv1.OperatorCondition) (time.Duration, error) {
	if target == nil {
		return 0, nil
	}
	live, err := Conditions(target)
	if err != nil {
		return 0, err
	}
	now := o.now()
	for i := range conditions {
		conditions[i].LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		for _, c := range live {
			if c.Type == conditions[i].Type && c.Status == conditions[i].Status {
				conditions[i].LastTransitionTime = c.LastTransitionTime
			}
		}
	}
	intent, err := o.intent(target, conditions)
	if err != nil {
		return 0, err
	}
	owner := patch.FieldOwner(o.Module)
	own, err := ownership.Applied(target, owner, "status")
	if err != nil {
		return 0, err
	}
	if ownership.Holds(target.Object, intent, own) {
		return 0, nil
	}

	text := digest(conditions)
	o.mu.Lock()
	defer o.mu.Unlock()
	if last, ok := o.last[target.GetUID()]; ok && last.text == text {
		if wait := last.at.Add(ReassertPause).Sub(now); wait > 0 {
			return wait, nil
		}
	}
	u := &unstructured.Unstructured{Object: intent}
	// The condition types carry the module's prefix: they are ours to force.
	err = o.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(owner), client.ForceOwnership)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("showing conditions on %s %s: %w", target.GetKind(), client.ObjectKeyFromObject(target), err)
	}
	if o.last == nil {
		o.last = map[types.UID]written{}
	}
	o.last[target.GetUID()] = written{text: text, at: now}
	return 0, nil
}

func (o *OperatorConditions) intent(target *unstructured.Unstructured, conditions []operatorv1.OperatorCondition) (map[string]any, error) {
	encoded, err := json.Marshal(map[string]any{
		"apiVersion": target.GetAPIVersion(),
		"kind":       target.GetKind(),
		"metadata":   map[string]any{"name": target.GetName(), "namespace": target.GetNamespace(), "uid": target.GetUID()},
		"status":     map[string]any{"conditions": conditions},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding conditions: %w", err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(encoded); err != nil {
		return nil, fmt.Errorf("encoding conditions: %w", err)
	}
	return u.Object, nil
}

// digest leaves out the times, which change with every attempt.
func digest(conditions []operatorv1.OperatorCondition) string {
	var text string
	for _, c := range conditions {
		text += fmt.Sprintf("%s=%s %s %q\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return text
}

func (o *OperatorConditions) now() time.Time {
	if o.Clock == nil {
		return time.Now()
	}
	return o.Clock.Now()
}

// Conditions reads status.conditions of an operator's resource. None at all is an empty list.
func Conditions(target *unstructured.Unstructured) ([]operatorv1.OperatorCondition, error) {
	list, _, err := unstructured.NestedSlice(target.Object, "status", "conditions")
	if err != nil {
		return nil, fmt.Errorf("reading status.conditions of %s %s: %w", target.GetKind(), client.ObjectKeyFromObject(target), err)
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("reading status.conditions: %w", err)
	}
	var conditions []operatorv1.OperatorCondition
	if err := json.Unmarshal(encoded, &conditions); err != nil {
		return nil, fmt.Errorf("reading status.conditions of %s %s: %w", target.GetKind(), client.ObjectKeyFromObject(target), err)
	}
	return conditions, nil
}
