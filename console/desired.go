package console

import (
	configv1ac "github.com/openshift/client-go/config/applyconfigurations/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/solonode/sno/patch"
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

// Decide is the whole decision. It is pure, and builds new apply configurations on every call, because one that was sent comes
// back filled with what the API server knows.
func Decide(in Inputs) Decision {
	decision := Decision{Console: decideShape(in.console(), Checks()), Downloads: decideShape(in.downloads(), DownloadsChecks())}
	decision.ClusterVersion, decision.Downloads = decideOverride(in.downloads(), decision.Downloads)
	return decision
}

// decideShape is the decision over one Deployment, as if nobody had to be told to let go of it first.
func decideShape(w workload, checks patch.Chain[Inputs]) DeploymentStep {
	if result := checks.Run(w.Inputs); result != nil {
		return DeploymentStep{Result: result, Release: letsGo(result.State)}
	}
	step := DeploymentStep{}
	step.Intent, step.Unset = shapeIntent(w)
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
	case shape.Release && keepsOverride(w, shape.Result):
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
	switch settled := holdsOurs(w.live) && len(Differences(w.live, *w.Cluster)) == 0; {
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
func keepsOverride(w workload, result *patch.Result) bool {
	if result.State != patch.Blocked {
		return false
	}
	stock, err := stockOwners(w.live)
	return err != nil || len(stock) == 0
}

// shapeIntent is the shape as an apply configuration, and the fields that must be absent but are there.
func shapeIntent(w workload) (*appsv1ac.DeploymentApplyConfiguration, []string) {
	want := patched(w.live, *w.Cluster)
	update := want.Spec.Strategy.RollingUpdate
	pod := corev1ac.PodSpec()
	if selector := want.Spec.Template.Spec.NodeSelector; len(selector) > 0 {
		pod.WithNodeSelector(selector)
	}
	for i := range want.Spec.Template.Spec.Tolerations {
		pod.WithTolerations(tolerationIntent(want.Spec.Template.Spec.Tolerations[i]))
	}
	spec := appsv1ac.DeploymentSpec().
		WithReplicas(*want.Spec.Replicas).
		WithStrategy(appsv1ac.DeploymentStrategy().WithType(want.Spec.Strategy.Type).WithRollingUpdate(
			appsv1ac.RollingUpdateDeployment().WithMaxUnavailable(*update.MaxUnavailable).WithMaxSurge(*update.MaxSurge)))
	if pod.NodeSelector != nil || pod.Tolerations != nil {
		spec.WithTemplate(corev1ac.PodTemplateSpec().WithSpec(pod))
	}
	var unset []string
	for _, field := range ShapeFields() {
		if has(w.live, field) && !has(want, field) {
			unset = append(unset, field)
		}
	}
	return appsv1ac.Deployment(w.name, Namespace).WithSpec(spec), unset
}

func tolerationIntent(t corev1.Toleration) *corev1ac.TolerationApplyConfiguration {
	intent := corev1ac.Toleration()
	if t.Key != "" {
		intent.WithKey(t.Key)
	}
	if t.Operator != "" {
		intent.WithOperator(t.Operator)
	}
	if t.Value != "" {
		intent.WithValue(t.Value)
	}
	if t.Effect != "" {
		intent.WithEffect(t.Effect)
	}
	if t.TolerationSeconds != nil {
		intent.WithTolerationSeconds(*t.TolerationSeconds)
	}
	return intent
}

func requiredTerms(d *appsv1.Deployment) []corev1.PodAffinityTerm {
	if affinity := d.Spec.Template.Spec.Affinity; affinity != nil && affinity.PodAntiAffinity != nil {
		return affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
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
