// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/topology/unsupportedconfig"
)

// Action is one write.
type Action string

// The actions. Those on an object that exists are bound to its UID and resourceVersion.
const (
	Nothing          Action = ""      // no write; Result or Observe has the state
	Claim            Action = "Claim" // apply the entries of spec.overrides that make the guard unmanaged
	ApplyBudget      Action = "ApplyBudget"
	ApplyDeployment  Action = "ApplyDeployment"
	DeleteBudget     Action = "DeleteBudget"
	DeleteDeployment Action = "DeleteDeployment"
	DisownBudget     Action = "DisownBudget"     // transfer the fields of this module to NewOwner, by TransferOwnership
	DisownDeployment Action = "DisownDeployment" // the same
	Unclaim          Action = "Unclaim"          // remove the entries of this module by an empty apply
)

// Decision is the next write: at most one step writes. After it, read all inputs again and call Decide again
// (docs/etcdguard-handover.md).
type Decision struct {
	ClusterVersion, Deployment, Budget patch.Step

	Result      *patch.Result // nil when there is no write and Observe has the result
	Deprecation string        // about the override that the topology replaces; empty when it is absent
}

// Write returns the step that writes, and what it does.
func (d Decision) Write() (patch.Step, Action) {
	for _, object := range []struct {
		step                   patch.Step
		apply, remove, release Action
	}{
		{d.ClusterVersion, Claim, Nothing, Unclaim},
		{d.Deployment, ApplyDeployment, DeleteDeployment, DisownDeployment},
		{d.Budget, ApplyBudget, DeleteBudget, DisownBudget},
	} {
		switch {
		case object.step.Intent != nil:
			return object.step, object.apply
		case object.step.Delete:
			return object.step, object.remove
		case object.step.Release:
			return object.step, object.release
		}
	}
	return patch.Step{}, Nothing
}

// unmanagedSuffix ends messages while the guard is unmanaged, or about to be.
const unmanagedSuffix = "; the guard is unmanaged in spec.overrides of the ClusterVersion, which blocks upgrades"

func report(state patch.State, reason, message string) Decision {
	return Decision{Result: &patch.Result{State: state, Reason: reason, Message: message}}
}

// Decide returns the next write for the guard, its budget and the ClusterVersion (R-ETC-3). The guard is neither
// removed nor relaxed while the topology, the nodes or the members of etcd are unknown (U-ETC-8).
func Decide(in Inputs) Decision {
	decision := decide(in)
	if _, action := decision.Write(); action == Nothing && decision.Result != nil {
		decision.Result = in.withHealth(*decision.Result)
	}
	if in.Etcd == nil {
		return decision
	}
	override, _, err := unsupportedconfig.Read(in.Etcd.Spec.UnsupportedConfigOverrides.Raw, etcdguard.OverrideKey)
	if decision.Deprecation = override.Deprecation(etcdguard.OverrideKey); err != nil {
		decision.Deprecation = err.Error()
	}
	return decision
}

func decide(in Inputs) Decision {
	switch result, ours := Checks().Run(in); {
	case result != nil && ours == patch.KeepFields:
		return Decision{Result: result}
	case result != nil && needsGuards(in.mode()) && in.operatorHasGuards() && result.State != patch.OptedOut:
		return yieldToOperator(in, result)
	case result != nil:
		return release(in, result)
	}
	c, err := in.claim()
	switch {
	case err != nil:
		return Decision{Result: patch.Invalid(err)}
	case needsGuards(in.mode()):
		return decideGuarded(in, c)
	}
	return decideUnguarded(in, c)
}

// release releases fields first and entries last: without them the cluster-version-operator writes the guard again.
func release(in Inputs, result *patch.Result) Decision {
	to := patch.ReleasedManager(etcdguard.Name)
	if in.ClusterVersion != nil {
		to = overrides.ClusterVersionOperator
	}
	switch {
	case in.ownsDeployment():
		return Decision{Deployment: patch.Step{Release: true, NewOwner: to}, Result: result}
	case in.ownsBudget():
		return Decision{Budget: patch.Step{Release: true, NewOwner: to}, Result: result}
	}
	if c, err := in.claim(); err == nil && c.Releasable {
		return Decision{ClusterVersion: patch.Step{Release: true}, Result: result}
	}
	return Decision{Result: result}
}

func yieldToOperator(in Inputs, result *patch.Result) Decision {
	switch ours := in.ownsDeployment() || in.ownsBudget(); {
	case ours && !in.operatorGuardsReady():
		return report(patch.Progressing, ReasonGivingBack, "Waiting for the guards of the etcd operator to be ready before this one is removed")
	case in.ownsBudget():
		return Decision{Budget: patch.Step{Delete: true}, Result: result}
	case in.ownsDeployment():
		return Decision{Deployment: patch.Step{Delete: true}, Result: result}
	}
	return release(in, result)
}

func decideUnguarded(in Inputs, c overrides.Claim) Decision {
	none, static := in.Deployment == nil && in.Budget == nil, in.versionOperatorMayWrite()
	removing := report(patch.Progressing, ReasonRemoving, "On one control-plane node a guard only blocks drains; it is being removed")
	const absent = "One control-plane node needs no guard, and there is none"
	voters, _ := etcdguard.Votes(in.Members)
	switch {
	case none && c.Releasable && !static:
		removing.ClusterVersion.Release = true
	case none && c.Releasable:
		return report(patch.InForce, patch.ReasonAsExpected, absent+unmanagedSuffix+in.Cluster.UnknownValues())
	case none:
		return report(patch.NotNeeded, patch.ReasonNotNeeded, absent+in.Cluster.UnknownValues())
	case in.Members == nil:
		return report(patch.Waiting, ReasonWaitingForMembers, "The guard stays until the members of etcd can be read; then it is removed")
	case voters > 1:
		return report(patch.Waiting, ReasonWaitingForMembers, "The guard stays while etcd has several members; then it is removed")
	case static && !c.InForce():
		return claiming(c, "only blocks drains on one control-plane node")
	case in.Budget != nil && !terminating(in.Budget):
		removing.Budget.Delete = true
	case in.Deployment != nil && !terminating(in.Deployment):
		removing.Deployment.Delete = true
	}
	return removing
}

// claiming returns the next step to make the guard unmanaged in spec.overrides. faults are the cause.
func claiming(c overrides.Claim, faults ...string) Decision {
	if c.Complete {
		return report(patch.Progressing, ReasonTakingOver,
			"Waiting for the cluster-version-operator to observe spec.overrides"+unmanagedSuffix+". If this lasts, check that the operator runs")
	}
	message := "The guard is taken over from the cluster-version-operator"
	if len(faults) > 0 {
		message = "The guard " + joinWords(faults) + ", so it is taken over from the cluster-version-operator"
	}
	decision := report(patch.Progressing, ReasonTakingOver, message+unmanagedSuffix)
	decision.ClusterVersion.Intent = c.Intent()
	return decision
}

func decideGuarded(in Inputs, c overrides.Claim) Decision {
	want, postponed := in.wantedStrength()
	if postponed {
		return report(patch.Progressing, ReasonMembersUnhealthy,
			"The guard is stricter than necessary until etcd is known to have as many healthy members as the topology expects")
	}
	faults := in.faults(want)
	fits, static := len(faults) == 0, in.versionOperatorMayWrite()
	ours := in.ownsDeployment() || in.ownsBudget() || c.Releasable
	// The static manifest has three guards of which one may be evicted, and none on the arbiter (U-ETC-5).
	matchesRelease := static && !c.Shared && want == (strength{replicas: 3, minReady: 2}) && in.mode() != configv1.HighlyAvailableArbiterMode
	switch {
	case fits && !ours:
		return report(patch.NotNeeded, patch.ReasonNotNeeded, "The guard has the right size"+in.Cluster.UnknownValues())
	case !ours && matchesRelease && in.versionOperatorWrites():
		return report(patch.Waiting, patch.ReasonWaitingForObject, "The guard "+joinWords(faults)+
			"; the cluster-version-operator is expected to correct it, so it is not taken over. If this lasts, check that the operator runs")
	case in.Deployment == nil && in.Image == "":
		return release(in, &patch.Result{State: patch.Waiting, Reason: patch.ReasonWaitingForObject,
			Message: "There is no guard, and no image to create one; set an image, or wait for the operator that creates the guard"})
	}
	apply, err := in.intents()
	settled := apply.deployment == nil && apply.budget == nil
	ownPartsFit := (!in.ownsDeployment() || apply.deployment == nil) && (!in.ownsBudget() || apply.budget == nil)
	switch {
	case err != nil:
		return Decision{Result: patch.Invalid(err)}
	case fits && matchesRelease && ownPartsFit:
		return release(in, &patch.Result{State: patch.Progressing, Reason: ReasonGivingBack,
			Message: "The release's own guard is right for this number of members; releasing it to the cluster-version-operator"})
	case !in.ownsDeployment() && (!in.ClientSecret || !in.CABundle):
		return certificateMissing(in)
	case static && (!c.Complete || (!c.Observed && !settled)):
		return claiming(c, faults...)
	case (in.Deployment != nil && terminating(in.Deployment)) || (in.Budget != nil && terminating(in.Budget)):
		return report(patch.Waiting, patch.ReasonWaitingForObject, "The guard is being deleted; it is recreated when it is gone")
	}
	return in.write(want, apply)
}

func certificateMissing(in Inputs) Decision {
	var missing []string
	if !in.ClientSecret {
		missing = append(missing, "the Secret "+etcdguard.ClientSecret)
	}
	if !in.CABundle {
		missing = append(missing, "the ConfigMap "+etcdguard.CABundle)
	}
	return report(patch.Waiting, ReasonCertificateMissing, fmt.Sprintf("Guards cannot check the health of etcd without %s in the namespace %s; "+
		"none is created or changed until they exist", joinWords(missing), etcdguard.Namespace))
}

func joinWords(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// intents are what to apply; nil if it would change nothing.
type intents struct {
	deployment                   *appsv1ac.DeploymentApplyConfiguration
	budget                       *policyv1ac.PodDisruptionBudgetApplyConfiguration
	unsetDeployment, unsetBudget []string
}

func (in Inputs) intents() (out intents, err error) {
	// A budget cannot have both numbers, and the release's node selector does not match an arbiter.
	if in.Budget != nil && in.Budget.Spec.MinAvailable != nil {
		out.unsetBudget = []string{fieldMinAvailable}
	}
	if in.Deployment != nil && in.mode() == configv1.HighlyAvailableArbiterMode && len(in.Deployment.Spec.Template.Spec.NodeSelector) > 0 {
		out.unsetDeployment = []string{fieldNodeSelector}
	}
	deployment, deploymentErr := etcdguard.Deployment(in.host())
	budget, budgetErr := etcdguard.DisruptionBudget(in.host())
	if err := errors.Join(deploymentErr, budgetErr); err != nil {
		return intents{}, err
	}
	if out.deployment, err = intentOf[appsv1ac.DeploymentApplyConfiguration](deployment, in.Deployment, out.unsetDeployment); err != nil {
		return intents{}, err
	}
	out.budget, err = intentOf[policyv1ac.PodDisruptionBudgetApplyConfiguration](budget, in.Budget, out.unsetBudget)
	return out, err
}

// write returns the next write to the guard. Of two, the one that keeps more guards ready in between comes first.
func (in Inputs) write(want strength, apply intents) Decision {
	budgetFirst := true
	switch live, both := in.liveStrength(); {
	case both:
		ifBudget, ifDeployment := max(live.replicas-(want.replicas-want.minReady), 0), minReadyOf(in.Budget, want.replicas)
		budgetFirst = ifBudget >= ifDeployment
	case in.Deployment != nil:
		budgetFirst = replicasOf(in.Deployment) >= want.replicas
	}
	decision := report(patch.Progressing, patch.ReasonRollingOut, "The guard is being written")
	switch {
	case apply.budget != nil && (budgetFirst || apply.deployment == nil):
		decision.Budget = patch.Step{Intent: apply.budget, Create: in.Budget == nil, Unset: apply.unsetBudget}
	case apply.deployment != nil:
		decision.Deployment = patch.Step{Intent: apply.deployment, Create: in.Deployment == nil, Unset: apply.unsetDeployment}
	default:
		return Decision{}
	}
	return decision
}

// intentOf returns the object as an apply configuration; nil if applying it to the live object would change nothing.
func intentOf[T, O any](object, live *O, unset []string) (*T, error) {
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("reading an intent: %w", err)
	}
	delete(want, "status")
	if live != nil && len(unset) == 0 {
		if inForce, err := inForce(want, live); err != nil || inForce {
			return nil, err
		}
	}
	intent := new(T)
	return intent, runtime.DefaultUnstructuredConverter.FromUnstructured(want, intent)
}

func inForce(intent map[string]any, live any) (bool, error) {
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, fmt.Errorf("reading a live object: %w", err)
	}
	own, err := ownership.Applied(&unstructured.Unstructured{Object: have}, FieldOwner, "")
	if err != nil {
		return false, err
	}
	// The API server keeps the owner of fields that were set to null.
	for _, field := range []string{fieldNodeSelector, fieldMinAvailable} {
		names := strings.Split(field, ".")[1:]
		_, wanted, _ := unstructured.NestedFieldNoCopy(intent, names...)
		path, err := ownership.ParsePath(field)
		if err == nil && !wanted && own.Has(path) {
			err = unstructured.SetNestedField(intent, nil, names...)
		}
		if err != nil {
			return false, err
		}
	}
	return ownership.UpToDate(have, intent, own), nil
}

// TransferOwnership returns managedFields in which what this module applied belongs to another manager, as if updated
// by it. An empty apply would remove those fields instead. The error is an ownership.ErrManagedFields.
func TransferOwnership(entries []metav1.ManagedFieldsEntry, to string) ([]metav1.ManagedFieldsEntry, error) {
	var out []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		entry = *entry.DeepCopy()
		fields, err := ownership.Fields(entry)
		if err != nil {
			return nil, err
		}
		if entry.Manager == FieldOwner && entry.Subresource == "" {
			entry.Manager, entry.Operation = to, metav1.ManagedFieldsOperationUpdate
		}
		same := slices.IndexFunc(out, func(other metav1.ManagedFieldsEntry) bool {
			return other.Manager == entry.Manager && other.Operation == entry.Operation && other.APIVersion == entry.APIVersion &&
				other.Subresource == entry.Subresource
		})
		if same < 0 {
			out = append(out, entry)
			continue
		}
		theirs, err := ownership.Fields(out[same])
		if err != nil {
			return nil, err
		}
		out[same].FieldsV1 = &metav1.FieldsV1{}
		raw, err := theirs.Union(fields).ToJSON()
		if err == nil {
			err = out[same].FieldsV1.UnmarshalJSON(raw)
		}
		if err != nil {
			return nil, fmt.Errorf("writing metadata.managedFields: %w", err)
		}
	}
	return out, nil
}
