// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/etcdguard/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/overrides"
)

var (
	guardMessages = apply.Messages{
		Subject: "The quorum guard", Creator: "this module",
		Resource: "deployments.apps and poddisruptionbudgets.policy in namespace " + etcdguard.Namespace,
	}
	versionMessages = apply.Messages{
		Subject: "The ClusterVersion", Creator: "the installer", Resource: "clusterversions.config.openshift.io",
	}
)

func (p *patcher) write(ctx context.Context, in decision.Inputs, d decision.Decision) patch.Result {
	_, action := d.Write()
	kind, result := apply.Applied, *d.Result
	result.After = controller.RequeueDelay
	conflict, err := p.send(ctx, in, d)
	switch {
	case conflict != nil:
		kind, result = apply.Conflicted, *conflict
	case err != nil:
		kind, result = apply.Failed, failed(ctx, d, result, err)
	case p.Options.DryRun:
		kind, result = apply.WouldApply, patch.Result{State: patch.WouldChange, Reason: patch.ReasonDryRun,
			Message: fmt.Sprintf("Dry run: the next write would be %s. %s", action, d.Result.Message)}
	default:
		logr.FromContextOrDiscard(ctx).Info("Written", "action", action, "reason", d.Result.Reason)
	}
	p.Metrics.RecordApply(etcdguard.Name, kind)
	return result
}

// failed returns the result of a failed write: next if the object has changed since it was read.
func failed(ctx context.Context, d decision.Decision, next patch.Result, err error) patch.Result {
	step, action := d.Write()
	switch {
	case step.Create && (apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)):
		return patch.Result{State: patch.Waiting, Reason: patch.ReasonWaitingForObject, After: time.Minute,
			Message: "The namespace " + etcdguard.Namespace + " is missing or being deleted; the guard is created when it exists"}
	case apply.StaleOrGone(err) != nil:
		logr.FromContextOrDiscard(ctx).V(1).Info("Object has changed since it was read, reconciling again", "action", action, "cause", err.Error())
		return next
	case action == decision.Claim, action == decision.Unclaim:
		return *versionMessages.Failed(etcdguard.Name, err)
	}
	return *guardMessages.Failed(etcdguard.Name, err)
}

// send sends the requests of a decision. conflict is set if another client owns a field that must not be overwritten.
func (p *patcher) send(ctx context.Context, in decision.Inputs, d decision.Decision) (conflict *patch.Result, err error) {
	step, action := d.Write()
	switch action {
	case decision.Nothing:
	case decision.Claim:
		return p.apply(ctx, in.ClusterVersion, action, step)
	case decision.ApplyDeployment:
		return p.apply(ctx, in.Deployment, action, step)
	case decision.ApplyBudget:
		return p.apply(ctx, in.Budget, action, step)
	case decision.Unclaim: // an empty apply removes the fields that only this module owns
		return nil, p.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(bindTo(versionObject.Unstructured(), in.ClusterVersion)))
	case decision.DeleteDeployment:
		return nil, p.delete(ctx, in.Deployment)
	case decision.DeleteBudget:
		return nil, p.delete(ctx, in.Budget)
	case decision.DisownDeployment:
		return nil, p.disown(ctx, in.Deployment, step.NewOwner)
	case decision.DisownBudget:
		return nil, p.disown(ctx, in.Budget, step.NewOwner)
	}
	return nil, nil
}

func bindTo(u *unstructured.Unstructured, to metav1.Object) *unstructured.Unstructured {
	u.SetUID(to.GetUID())
	u.SetResourceVersion(to.GetResourceVersion())
	return u
}

// apply applies without force first, and with force only if the fields of every manager in the conflict may be
// overwritten.
func (p *patcher) apply(ctx context.Context, target metav1.Object, action decision.Action, step patch.Step) (*patch.Result, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(step.Intent)
	if err != nil {
		return nil, fmt.Errorf("reading an intent: %w", err)
	}
	for _, field := range step.Unset {
		if err := unstructured.SetNestedField(content, nil, strings.Split(field, ".")[1:]...); err != nil {
			return nil, fmt.Errorf("unsetting %s: %w", field, err)
		}
	}
	body := &unstructured.Unstructured{Object: content}
	if !step.Create {
		bindTo(body, target)
	}
	err = p.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body.DeepCopy())) // Apply overwrites its argument
	conflicts := apply.ConflictsOf(err)
	if len(conflicts) == 0 || step.Create {
		return nil, err
	}
	i := slices.IndexFunc(conflicts, func(c apply.Conflict) bool {
		forcible := c.Manager == overrides.ClusterVersionOperator || c.Manager == patch.ReleasedManager(etcdguard.Name)
		return action == decision.Claim || (!forcible && !p.Options.ForceConflicts)
	})
	if i < 0 {
		return nil, p.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), client.ForceOwnership)
	}
	p.Metrics.RecordConflict(etcdguard.Name, conflicts[i].Manager)
	if action == decision.Claim {
		return overrides.OwnedByOther(decision.OverridesSubject, conflicts[i].Manager), nil
	}
	return ptr.To(patch.OwnedByOther(conflicts[i].Field, conflicts[i].Manager)), nil
}

// disown changes the owner of the fields, not their values.
func (p *patcher) disown(ctx context.Context, target client.Object, to string) error {
	entries, err := decision.TransferOwnership(target.GetManagedFields(), to)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": target.GetUID(), "resourceVersion": target.GetResourceVersion(), "managedFields": entries,
	}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	return p.Client.Patch(ctx, target, client.RawPatch(types.MergePatchType, body))
}

func (p *patcher) delete(ctx context.Context, target client.Object) error {
	return p.Client.Delete(ctx, target, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: ptr.To(target.GetUID()), ResourceVersion: ptr.To(target.GetResourceVersion())})
}
