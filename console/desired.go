package console

import (
	"encoding/json"
	"fmt"
	"slices"

	configv1ac "github.com/openshift/client-go/config/applyconfigurations/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	shapes "github.com/solonode/sno/patch/workload"
)

// Decision is the next step for each of the patched objects. Carry out what it says, in any order, read the objects again and
// decide again: what must not happen at the same time is never in one Decision.
//
//	taking over   the override, then (when the cluster-version-operator has seen it) the shape of downloads
//	letting go    the shape of downloads, then (when nothing of it is left) the override
//
// Cut off anywhere, downloads runs: in its old shape, or in the new one with the cluster-version-operator kept away. When
// downloads is deleted meanwhile, the override goes, because only the cluster-version-operator makes it anew.
type Decision struct {
	ClusterVersion     ClusterVersionStep
	Downloads, Console DeploymentStep
}

// ClusterVersionStep is what is to become of the override. The zero value leaves it as it is.
type ClusterVersionStep struct {
	// Intent is what to apply; nil for nothing. It holds one entry, so everybody else's stay.
	Intent *configv1ac.ClusterVersionApplyConfiguration
	// Release says that the entry is to be given back.
	Release bool
}

// DeploymentStep is what is to become of the shape of a Deployment. The zero value leaves it as it is.
type DeploymentStep struct {
	// Intent is what to apply; nil for nothing, and Result says why.
	Intent *appsv1ac.DeploymentApplyConfiguration
	// Unset lists fields that the intent wants absent and that are there: an apply cannot remove what others own. They may be
	// removed under the same conditions under which the intent may take a field from its owner.
	Unset []string
	// Release says that the shape is to be given back. It is never set while something is unknown or cannot be read: then
	// everything stays as it is.
	Release bool
	// Result is why there is no intent, or what stands in the way beside it; nil when there is nothing to say before
	// applying.
	Result *patch.Result
}

// Result is the worst of what both Deployments have to say; nil when there is nothing to say before applying. That one of them
// needs nothing is not worth saying while the other is shaped.
func (d Decision) Result() *patch.Result {
	var worst *patch.Result
	for _, step := range []DeploymentStep{d.Console, d.Downloads} {
		shaping := d.Console.Intent != nil || d.Downloads.Intent != nil
		if step.Result == nil || (shaping && step.Result.OK()) || (worst != nil && step.Result.State <= worst.State) {
			continue
		}
		worst = step.Result
	}
	return worst
}

// Decide is the whole decision: the shape of both Deployments, and downloads taken over from its static manifest
// (R-CON-2). It is pure, and builds new apply configurations on every call, because one that was sent comes back filled
// with what the API server knows.
func Decide(in Inputs) Decision {
	decision := Decision{Console: decideShape(in.console(), Checks()), Downloads: decideShape(in.downloads(), DownloadsChecks())}
	decision.ClusterVersion, decision.Downloads = decideOverride(in.downloads(), decision.Downloads)
	decision.Console.Result = in.console().standingBack(decision.Console)
	decision.Downloads.Result = in.downloads().standingBack(decision.Downloads)
	return decision
}

// standingBack is what to say of a Deployment that needs the shape and is left to somebody else. A rollout of theirs that is stuck comes first:
// nobody else reports that old pods keep the new one off the only node, and it never ends by itself. Nothing is written for all that.
func (w workload) standingBack(step DeploymentStep) *patch.Result {
	if !step.Release || neededChecks().Run(w) != nil || !shapes.RolloutStuck(w.live) {
		return step.Result
	}
	return &patch.Result{State: patch.Failed, Reason: ReasonRolloutStuck, Message: "The rollout of " + w.name +
		", which somebody else shapes, does not finish; if a new pod is Pending, delete the old one, whose anti-affinity may keep it off the node"}
}

// decideShape is the decision over one Deployment, as if nobody had to be told to let go of it first.
func decideShape(w workload, checks patch.Chain[Inputs]) DeploymentStep {
	if result := checks.Run(w.Inputs); result != nil {
		return DeploymentStep{Result: result, Release: letsGo(result.State)}
	}
	step := DeploymentStep{}
	var err error
	if step.Intent, step.Unset, err = shapeIntent(w); err != nil {
		return DeploymentStep{Result: invalid(err)}
	}
	if blocksDrain(w.budget) {
		step.Result = &patch.Result{State: patch.Blocked, Reason: ReasonDrainBlocked,
			Message: "A PodDisruptionBudget lets no drain evict the only pod; delete it, or set maxUnavailable to 1 where it comes from"}
	}
	return step
}

// letsGo tells whether a result gives the fields back. The others only mean that nothing can be said.
func letsGo(state patch.State) bool {
	switch state {
	case patch.NotNeeded, patch.OptedOut, patch.Blocked:
		return true
	case patch.InForce, patch.WouldChange, patch.Progressing, patch.Waiting, patch.Reverted, patch.Failed:
		return false
	}
	return false
}

// decideOverride puts the override before the shape of downloads on the way in, and after it on the way out.
func decideOverride(w workload, shape DeploymentStep) (ClusterVersionStep, DeploymentStep) {
	if w.ClusterVersion == nil {
		return ClusterVersionStep{}, shape
	}
	if result := shape.Result; shape.Intent == nil && result.State == patch.Failed {
		return ClusterVersionStep{}, shape
	}
	state, err := ReadOverride(w.ClusterVersion)
	var keeps bool
	if err == nil && shape.Release && !w.gone() {
		keeps, err = keepsOverride(w, shape.Result)
	}
	if err != nil {
		return ClusterVersionStep{}, DeploymentStep{Result: invalid(err)}
	}
	switch {
	case w.gone():
		// Nobody but the cluster-version-operator makes it again, and it does not while the entry stands.
		if shape.Result.State == patch.Waiting && state.Present && state.Unmanaged && !state.Ours {
			shape.Result = &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject, Message: "There is no Deployment, and somebody's entry in " +
				FieldOverrides + " keeps the cluster-version-operator from making one; remove the entry there"}
		}
		return ClusterVersionStep{Release: state.Ours}, shape
	case keeps:
		return ClusterVersionStep{}, shape
	case shape.Release && state.Ours && !state.Observed && holdsOurs(w.live):
		// The entry is newer than what the cluster-version-operator works with, so it may still be writing.
		return ClusterVersionStep{}, DeploymentStep{Result: &patch.Result{State: patch.Progressing, Reason: ReasonGivingBack,
			Message: "Waiting for the cluster-version-operator before downloads is given back; if this lasts, see whether it runs"}}
	case shape.Release:
		return ClusterVersionStep{Release: state.Ours && !holdsOurs(w.live)}, shape
	case shape.Intent == nil || !w.needsOverride():
		return ClusterVersionStep{}, shape
	}

	step := ClusterVersionStep{}
	if !state.Present || !state.Unmanaged || state.Ours {
		step.Intent = overrideIntent()
	}
	switch settled := holdsOurs(w.live) && len(differences(w.live, *w.Cluster)) == 0; {
	case !state.Present || !state.Unmanaged:
		return step, DeploymentStep{Result: &patch.Result{State: patch.Progressing, Reason: ReasonTakingOver,
			Message: "Telling the cluster-version-operator to let go of downloads; minor upgrades wait until this is given back"}}
	case !state.Observed && !settled:
		return step, DeploymentStep{Result: &patch.Result{State: patch.Progressing, Reason: ReasonTakingOver,
			Message: "Waiting for the cluster-version-operator to let go of downloads; if this lasts, see whether it runs"}}
	}
	return step, shape
}

// keepsOverride tells whether the override outlives the shape. A person who sets a field of downloads wants it to stay; without
// the override the cluster-version-operator would write over it.
func keepsOverride(w workload, result *patch.Result) (bool, error) {
	if result.State != patch.Blocked {
		return false, nil
	}
	stock, err := stockOwners(w.live)
	return len(stock) == 0, err
}

// shapeIntent is the shape as an apply configuration, and the fields that must be absent but are there.
func shapeIntent(w workload) (*appsv1ac.DeploymentApplyConfiguration, []string, error) {
	want := patched(w.live, *w.Cluster)
	update := want.Spec.Strategy.RollingUpdate
	pod := corev1ac.PodSpec()
	if selector := want.Spec.Template.Spec.NodeSelector; len(selector) > 0 {
		pod.WithNodeSelector(selector)
	}
	if err := convert(want.Spec.Template.Spec.Tolerations, &pod.Tolerations); err != nil {
		return nil, nil, err
	}
	terms, err := termsIntent(w.live, want)
	if err != nil {
		return nil, nil, err
	}
	if terms != nil {
		pod.WithAffinity(corev1ac.Affinity().WithPodAntiAffinity(terms))
	}
	spec := appsv1ac.DeploymentSpec().
		WithReplicas(*want.Spec.Replicas).
		WithStrategy(appsv1ac.DeploymentStrategy().WithType(want.Spec.Strategy.Type).WithRollingUpdate(
			appsv1ac.RollingUpdateDeployment().WithMaxUnavailable(*update.MaxUnavailable).WithMaxSurge(*update.MaxSurge)))
	if len(pod.NodeSelector)+len(pod.Tolerations) > 0 || pod.Affinity != nil {
		spec.WithTemplate(corev1ac.PodTemplateSpec().WithSpec(pod))
	}
	unset, err := unsetFields(w.live, want)
	return appsv1ac.Deployment(w.name, Namespace).WithSpec(spec), unset, err
}

// termsIntent holds what is left of the lists of anti-affinity: of one that changes, and of one that is ours, which would go without it. A list
// of somebody else in which nothing changes stays out, or they could not change it any more without a conflict.
func termsIntent(live, want *appsv1.Deployment) (*corev1ac.PodAntiAffinityApplyConfiguration, error) {
	left := corev1.PodAntiAffinity{}
	for _, field := range []string{FieldRequiredAntiAffinity, FieldPreferredAntiAffinity} {
		managers, err := ownership.Managers(live, field)
		if err != nil {
			return nil, err
		}
		same := equality.Semantic.DeepEqual(valueOf(live, field), valueOf(want, field))
		switch whole := shapes.AntiAffinityOf(want); {
		case same && !slices.Contains(managers, FieldOwner):
		case field == FieldRequiredAntiAffinity:
			left.RequiredDuringSchedulingIgnoredDuringExecution = whole.RequiredDuringSchedulingIgnoredDuringExecution
		default:
			left.PreferredDuringSchedulingIgnoredDuringExecution = whole.PreferredDuringSchedulingIgnoredDuringExecution
		}
	}
	if len(left.RequiredDuringSchedulingIgnoredDuringExecution)+len(left.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		return nil, nil
	}
	intent := corev1ac.PodAntiAffinity()
	return intent, convert(left, intent)
}

// unsetFields are those that must be absent but are there: of the shape, and maps that hold nothing when their part of the shape is gone.
func unsetFields(live, want *appsv1.Deployment) ([]string, error) {
	var unset []string
	for _, field := range []string{FieldNodeSelector, FieldTolerations} {
		if has(live, field) && !has(want, field) {
			unset = append(unset, field)
		}
	}
	managers, err := ownership.Managers(live, shapes.FieldAffinity)
	if err != nil {
		return nil, err
	}
	return append(unset, shapes.UnsetAntiAffinity(live, want, slices.Contains(managers, FieldOwner))...), nil
}

// convert makes an apply configuration of a value whose fields are all optional, so that nothing is claimed that is not set.
func convert[T []corev1.Toleration | corev1.PodAntiAffinity](from T, to any) error {
	encoded, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(encoded, to)
	}
	if err != nil {
		return fmt.Errorf("building an apply configuration: %w", err)
	}
	return nil
}

// blocksDrain tells whether a budget allows no eviction of the pod of one replica.
func blocksDrain(budget *policyv1.PodDisruptionBudget) bool {
	if budget == nil {
		return false
	}
	if most := budget.Spec.MaxUnavailable; most != nil {
		n, err := intstr.GetScaledValueFromIntOrPercent(most, 1, true)
		return err == nil && n < 1
	}
	if least := budget.Spec.MinAvailable; least != nil {
		n, err := intstr.GetScaledValueFromIntOrPercent(least, 1, true)
		return err == nil && n > 0
	}
	return false
}
