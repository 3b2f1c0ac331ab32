package auth

import (
	"encoding/json"
	"fmt"
	"slices"

	operatorv1ac "github.com/openshift/client-go/operator/applyconfigurations/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/patch/workload"
)

// Decision is what is to become of the three objects. Each stands for itself: one that is blocked stops no other.
type Decision struct {
	// Override is about authentications.operator.openshift.io/cluster.
	Override OverrideDecision
	// OAuthServer and OAuthAPIServer are about the Deployments.
	OAuthServer, OAuthAPIServer DeploymentDecision
}

// OverrideDecision is what is to become of the override.
type OverrideDecision struct {
	// Intent is what to apply, without force; nil for nothing, and Result says why.
	Intent *operatorv1ac.AuthenticationApplyConfiguration
	// Release says that we own something on the object and let go of it: the override disappears where nobody else owns it
	// too. It is never set while something is unknown or cannot be read, nor where an override is somebody else's.
	Release bool
	// Result is why there is no intent; nil with one.
	Result *patch.Result
}

// DeploymentDecision is what is to become of one Deployment.
type DeploymentDecision struct {
	// Intent is what to apply; nil for nothing, and Result says why.
	Intent *appsv1ac.DeploymentApplyConfiguration
	// Unset are the fields that shall be absent beside the intent, because somebody else has a value there, or nobody knows
	// who.
	Unset []string
	// Release says that we own something on the Deployment and let go of all of it.
	Release bool
	// Result is why there is no intent; nil with one.
	Result *patch.Result
}

// Decide is the whole decision. It is pure, and builds new apply configurations on every call, because one that was sent comes
// back filled with what the API server knows.
func Decide(in Inputs) Decision {
	return Decision{Override: DecideOverride(in), OAuthServer: oauthServer.decide(in), OAuthAPIServer: oauthAPIServer.decide(in)}
}

// DecideOverride sets the override on SingleReplica, on releases that need it, where it is absent or ours. It names only its own
// key, so that the other overrides are left alone where the API server keeps account of them key by key; where it does not,
// OverrideFree of OverrideChecks has stopped before.
func DecideOverride(in Inputs) OverrideDecision {
	if result := OverrideChecks().Run(in); result != nil {
		return OverrideDecision{Result: result, Release: lettingGo(result) && ours(in.Authentication)}
	}
	return OverrideDecision{Intent: operatorv1ac.Authentication(ConfigName).WithSpec(
		operatorv1ac.AuthenticationSpec().WithUnsupportedConfigOverrides(runtime.RawExtension{Raw: []byte(`{"` + OverrideKey + `":true}`)}))}
}

func (o operand) decide(in Inputs) DeploymentDecision {
	if result := o.checks().Run(in); result != nil {
		return DeploymentDecision{Result: o.standingBack(in, result), Release: lettingGo(result) && ours(o.live(in))}
	}
	live := o.live(in)
	shaped, err := o.wanted(in)
	if err != nil {
		return DeploymentDecision{Result: invalid(err)}
	}
	intent, err := o.intent(shaped)
	if err != nil {
		return DeploymentDecision{Result: invalid(err)}
	}
	decision := DeploymentDecision{Intent: intent}
	for _, field := range gone(live, shaped) {
		owners, err := ownership.Managers(live, field)
		if err != nil {
			return DeploymentDecision{Result: invalid(err)}
		}
		if !slices.Equal(owners, []string{FieldOwner}) {
			decision.Unset = append(decision.Unset, field)
		}
	}
	return decision
}

// standingBack is what to say of a Deployment that is left to somebody else: that it is, or that its rollout is stuck, which nobody else
// reports where the old pods keep the new ones off the only node.
func (o operand) standingBack(in Inputs, result *patch.Result) *patch.Result {
	live := o.live(in)
	if result.Reason != ReasonFieldOwnedByOther || live == nil || !workload.RolloutStuck(live) {
		return result
	}
	return &patch.Result{State: patch.Failed, Reason: ReasonRolloutStuck, Message: "The rollout of the " + o.subject() +
		" does not finish, and somebody else shapes it; if a new pod is Pending, delete the old one, whose anti-affinity may keep it off the node"}
}

// wanted is the shape of a Deployment that runs already: its old pods may be in the way of the first rollout.
func (o operand) wanted(in Inputs) (*appsv1.Deployment, error) {
	shaped, err := o.shaped(in)
	if err != nil {
		return nil, err
	}
	workload.GiveWay(shaped, o.live(in))
	return shaped, nil
}

// intent holds of a shaped Deployment what the shape sets, and nothing else.
func (o operand) intent(shaped *appsv1.Deployment) (*appsv1ac.DeploymentApplyConfiguration, error) {
	pod := corev1ac.PodSpec().WithNodeSelector(shaped.Spec.Template.Spec.NodeSelector)
	var tolerations []corev1ac.TolerationApplyConfiguration
	if err := convert(shaped.Spec.Template.Spec.Tolerations, &tolerations); err != nil {
		return nil, err
	}
	pod.Tolerations = tolerations
	if affinity := shaped.Spec.Template.Spec.Affinity; affinity != nil && affinity.PodAntiAffinity != nil {
		terms := corev1ac.PodAntiAffinity()
		if err := convert(affinity.PodAntiAffinity, terms); err != nil {
			return nil, err
		}
		pod.WithAffinity(corev1ac.Affinity().WithPodAntiAffinity(terms))
	}
	update := shaped.Spec.Strategy.RollingUpdate
	return appsv1ac.Deployment(o.name, o.namespace).WithSpec(appsv1ac.DeploymentSpec().
		WithReplicas(*shaped.Spec.Replicas).
		WithStrategy(appsv1ac.DeploymentStrategy().WithType(shaped.Spec.Strategy.Type).WithRollingUpdate(
			appsv1ac.RollingUpdateDeployment().WithMaxUnavailable(*update.MaxUnavailable).WithMaxSurge(*update.MaxSurge))).
		WithTemplate(corev1ac.PodTemplateSpec().WithSpec(pod))), nil
}

// convert makes an apply configuration of a value whose fields are all optional, so that nothing is claimed that is not set.
func convert[T []corev1.Toleration | *corev1.PodAntiAffinity](from T, to any) error {
	encoded, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(encoded, to)
	}
	if err != nil {
		return fmt.Errorf("building an apply configuration: %w", err)
	}
	return nil
}

// lettingGo tells whether a result ends the patch, or only means that nothing can be said.
func lettingGo(result *patch.Result) bool {
	switch result.State {
	case patch.NotNeeded, patch.OptedOut, patch.Blocked:
		return true
	case patch.InForce, patch.WouldChange, patch.Progressing, patch.Waiting, patch.Reverted, patch.Failed:
		return false
	}
	return false
}

// ours tells whether something on the object was applied by us and is still there.
func ours(object metav1.Object) bool {
	applied, err := ownership.Applied(object, FieldOwner, "")
	return err == nil && !applied.Empty()
}
