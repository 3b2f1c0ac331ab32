// SPDX-License-Identifier: Apache-2.0

package operand

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/workload"
)

// Deployment is a Deployment of another operator that a module shapes.
type Deployment struct {
	Subject string             // the name in messages, such as "downloads Deployment"
	Owner   string             // the module's field owner
	Live    *appsv1.Deployment // with its managedFields; nil if there is none
	Cluster *topology.Cluster  // nil while the topology is not known
	// Shape returns a shaped copy. It is called only with Live and Cluster.
	Shape func(*appsv1.Deployment) (*appsv1.Deployment, error)
	Force bool // takes fields from any owner
}

// Exists returns a Waiting result unless the Deployment exists. No module creates it.
func (o Deployment) Exists() *patch.Result {
	message := ""
	switch {
	case o.Live == nil:
		message = "There is no " + o.Subject + "; its operator makes one where it is needed, this module never does"
	case o.Live.DeletionTimestamp != nil:
		message = "The " + o.Subject + " is being deleted; its operator makes a new one where it is needed"
	default:
		return nil
	}
	return &patch.Result{State: patch.Waiting, Reason: patch.ReasonWaitingForObject, Message: message}
}

// FieldsFree returns a Blocked result if a manager that is not overridable owns a field with another value. The fields
// depend on each other (topology.RolloutStrategy), so one owned field blocks all of them.
func (o Deployment) FieldsFree(overridable ...string) *patch.Result {
	if o.Force {
		return nil
	}
	shaped, err := o.Shape(o.Live)
	if err != nil {
		return patch.Invalid(err)
	}
	// An owner of the current value blocks if the first or a later rollout changes it.
	have, later, first := valuesOf(o.Live), valuesOf(shaped), valuesOf(unblocked(shaped, o.Live))
	for _, field := range Fields() {
		value := have[field]
		if value == nil || reflect.DeepEqual(value, later[field]) && reflect.DeepEqual(value, first[field]) {
			continue
		}
		others, err := ownership.Others(o.Live, field, append(overridable, o.Owner)...)
		switch {
		case err != nil:
			return patch.Invalid(err)
		case len(others) > 0:
			return &patch.Result{State: patch.Blocked, Reason: patch.ReasonFieldOwnedByOther, Message: fmt.Sprintf(
				"%s of the %s is owned by %s and stays as it is, and so does the rest of it; to have it follow the topology, "+
					"remove the field there or start with --force-conflicts", field, o.Subject, patch.Quoted(others))}
		}
	}
	return nil
}

// RolloutStuckOr returns RolloutStuck for a stuck rollout, which no other condition reports, else the given result.
func (o Deployment) RolloutStuckOr(result *patch.Result) *patch.Result {
	if o.Live == nil || !workload.RolloutStuck(o.Live) {
		return result
	}
	return &patch.Result{State: patch.Failed, Reason: patch.ReasonRolloutStuck, Message: "The rollout of the " + o.Subject + ", which another client " +
		"shapes, does not finish; if a new pod is Pending, delete the old one, whose anti-affinity may keep it off the node"}
}

// Shaped reports whether the Deployment has its shape.
func (o Deployment) Shaped() (bool, error) {
	shaped, err := o.Shape(o.Live)
	return err == nil && same(o.Live, unblocked(shaped, o.Live)), err
}

// Step returns the step that applies the shape, with UnblockRollout.
func (o Deployment) Step() patch.Step {
	shaped, err := o.Shape(o.Live)
	if err != nil {
		return patch.Step{Result: patch.Invalid(err)}
	}
	wanted := unblocked(shaped, o.Live)
	step, err := o.change(wanted)
	if err != nil {
		return patch.Step{Result: patch.Invalid(err)}
	}
	result := Health(o.Subject, o.Live)
	switch {
	case !same(o.Live, wanted):
		result = patch.Result{State: patch.Progressing, Reason: patch.ReasonRollingOut, Message: "The " + o.Subject + " is being shaped"}
	case result.State == patch.InForce:
		result.Message = "The " + o.Subject + " has the shape of the topology, and all of its pods are available" + o.Cluster.UnknownValues()
	}
	step.Result = &result
	return step
}

func unblocked(shaped, live *appsv1.Deployment) *appsv1.Deployment {
	wanted := shaped.DeepCopy()
	workload.UnblockRollout(wanted, live)
	return wanted
}

type applyConfiguration struct{ unstructured.Unstructured }

func (*applyConfiguration) IsApplyConfiguration() {}

// change returns the intent and the fields to unset. The intent contains a list of anti-affinity only if it changes or
// the module owns it: co-owning an unchanged list would turn the next change by its owner into a conflict.
func (o Deployment) change(wanted *appsv1.Deployment) (patch.Step, error) {
	intent := &applyConfiguration{}
	intent.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	intent.SetNamespace(wanted.Namespace)
	intent.SetName(wanted.Name)
	step := patch.Step{Intent: intent}
	unsetsList := false
	have, want := valuesOf(o.Live), valuesOf(wanted)
	for _, field := range Fields() {
		isAntiAffinity := strings.HasPrefix(field, FieldPodAntiAffinity)
		if want[field] == nil {
			if have[field] != nil {
				step.Unset = append(step.Unset, field)
				unsetsList = unsetsList || isAntiAffinity
			}
			continue
		}
		if isAntiAffinity && reflect.DeepEqual(have[field], want[field]) {
			managers, err := ownership.Managers(o.Live, field)
			if err != nil {
				return patch.Step{}, err
			}
			if !slices.Contains(managers, o.Owner) {
				continue
			}
		}
		if err := unstructured.SetNestedField(intent.Object, want[field], names(field)...); err != nil {
			return patch.Step{}, fmt.Errorf("setting %s: %w", field, err)
		}
	}

	// Empty maps around the lists are removed, unless another client made them empty. The process may have ended between
	// the request that removed the lists and that for the maps: then the module owns lists that are absent.
	managers, err := ownership.Managers(o.Live, FieldAffinity)
	if err != nil || !unsetsList && !slices.Contains(managers, o.Owner) {
		return step, err
	}
	after := wanted.DeepCopy().Spec.Template.Spec
	workload.SetAntiAffinity(&after, workload.AntiAffinityOf(wanted))
	switch before := o.Live.Spec.Template.Spec.Affinity; {
	case before == nil:
	case after.Affinity == nil:
		step.Unset = append(step.Unset, FieldAffinity)
	case before.PodAntiAffinity != nil && after.Affinity.PodAntiAffinity == nil:
		step.Unset = append(step.Unset, FieldPodAntiAffinity)
	}
	return step, nil
}

func same(a, b *appsv1.Deployment) bool { return reflect.DeepEqual(valuesOf(a), valuesOf(b)) }

// Health returns the result for a Deployment of any shape, InForce, Progressing, or Failed after the progress deadline.
func Health(subject string, deployment *appsv1.Deployment) patch.Result {
	available := deployment.Status.AvailableReplicas > 0
	result := func(state patch.State, reason, message string, args ...any) patch.Result {
		return patch.Result{State: state, Reason: reason, Message: fmt.Sprintf(message, append([]any{subject}, args...)...)}
	}
	switch {
	case workload.RolledOut(deployment):
		return result(patch.InForce, patch.ReasonAsExpected, "All pods of the %s are available")
	case workload.RolloutStuck(deployment):
		pods := " and no pod is available"
		if available {
			pods = ", other pods still serve"
		}
		return result(patch.Failed, patch.ReasonRolloutStuck, "The rollout of the %s does not finish%s; look at the events and logs of its pods", pods)
	case deployment.Spec.Paused:
		return result(patch.Progressing, patch.ReasonRollingOut, "The rollout of the %s is paused; resume it with oc rollout resume")
	}
	pods := ", no pod is available yet"
	if available {
		pods = " while available"
	}
	return result(patch.Progressing, patch.ReasonRollingOut,
		"The %s is rolling out%s; if pods stay Pending or crash, look at their events and logs", pods)
}
