package etcdguard

import (
	"encoding/json"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	configv1ac "github.com/openshift/client-go/config/applyconfigurations/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// Action is one write.
type Action string

// The actions. Those on an object that is there are bound to what was read of it (UID and resourceVersion), and refused by the
// API server when it has changed since.
const (
	// Nothing is to be written; Result says why, or the guard stands and Observe tells how.
	Nothing Action = ""
	// Claim applies ClusterVersion: the entries that keep the cluster-version-operator away.
	Claim Action = "Claim"
	// ApplyBudget and ApplyDeployment apply Budget or Deployment, and take their fields from TakeFrom. Where Create is set the
	// object was not there: the apply, which is bound to nothing then, takes no field from anybody, so that what somebody made
	// meanwhile is a conflict.
	ApplyBudget     Action = "ApplyBudget"
	ApplyDeployment Action = "ApplyDeployment"
	// TidyBudget and TidyDeployment remove Annotations, which mean something to the cluster-version-operator alone.
	TidyBudget     Action = "TidyBudget"
	TidyDeployment Action = "TidyDeployment"
	// DeleteBudget and DeleteDeployment delete, in the foreground or not.
	DeleteBudget     Action = "DeleteBudget"
	DeleteDeployment Action = "DeleteDeployment"
	// DisownBudget and DisownDeployment give what this module owns to the manager HandTo, as Disowned says, and leave every value
	// where it is.
	DisownBudget     Action = "DisownBudget"
	DisownDeployment Action = "DisownDeployment"
	// Unclaim gives our entries in the ClusterVersion back, by applying nothing.
	Unclaim Action = "Unclaim"
)

// Decision is the next write: carry it out, read everything again, decide again. There is only ever one, so that the order is
// nobody's choice, and a crash can only fall between two of them.
//
//	taking over    Claim, (the cluster-version-operator has seen it), ApplyBudget and ApplyDeployment, Tidy both
//	on one node    Claim, (seen), DeleteBudget, DeleteDeployment
//	letting go     Disown both, Unclaim
//
// docs/etcdguard-handover.md has the whole of it, with its invariant.
type Decision struct {
	Action Action
	// ClusterVersion, Deployment and Budget are what to apply, each set for its own action only. They are built anew on every
	// call, because one that was sent comes back filled with what the API server knows.
	ClusterVersion *configv1ac.ClusterVersionApplyConfiguration
	Deployment     *appsv1ac.DeploymentApplyConfiguration
	Budget         *policyv1ac.PodDisruptionBudgetApplyConfiguration
	// Create tells that the object was not there.
	Create bool
	// Unset lists fields that the intent wants absent and that are there: an apply cannot remove what others own.
	Unset []string
	// TakeFrom lists the managers from which any field of the intent may be taken; what anybody else owns is theirs. Empty where
	// Create is set.
	TakeFrom []string
	// HandTo is the manager that owns afterwards what is disowned.
	HandTo string
	// Annotations are the keys that Tidy removes.
	Annotations []string
	// Result is what there is to say meanwhile; nil when the guard stands as it is wanted, and Observe tells how.
	Result *patch.Result
	// Deprecation is what to tell about the override that the topology replaces; empty when it is absent.
	Deprecation string
}

// Decide is the whole decision over the guard's hand-over (R-ETC-3). It is pure.
//
// Nothing is removed or loosened while the topology, the nodes or the members of etcd are not known (U-ETC-8).
func Decide(in Inputs) Decision {
	decision := decide(in)
	if decision.Action == Nothing && decision.Result != nil {
		decision.Result = in.besides(*decision.Result)
	}
	decision.Deprecation = deprecation(in)
	return decision
}

func decide(in Inputs) Decision {
	for _, check := range checks() {
		result := check.Evaluate(in)
		if result == nil {
			continue
		}
		if !check.letGo || result.State == patch.Failed {
			return Decision{Result: result}
		}
		if check.Name == operatorGuardsCheck {
			return yield(in, result)
		}
		return letGo(in, result)
	}
	c, err := readClaim(in.ClusterVersion)
	if err != nil {
		return Decision{Result: invalid(err)}
	}
	if !guarded(in.mode()) {
		return remove(in, c)
	}
	return keep(in, c)
}

func deprecation(in Inputs) string {
	if in.Etcd == nil {
		return ""
	}
	override, err := ReadOverride(in.Etcd.Spec.UnsupportedConfigOverrides.Raw)
	if err != nil {
		return err.Error()
	}
	return override.Deprecation()
}

// letGo gives back what is held, one write at a time. The guard keeps every value: until the entries are gone nobody writes it,
// from then on the cluster-version-operator does.
func letGo(in Inputs, result *patch.Result) Decision {
	to := Released
	if in.ClusterVersion != nil {
		to = ClusterVersionOperator
	}
	switch {
	case in.oursDeployment():
		return Decision{Action: DisownDeployment, HandTo: to, Result: result}
	case in.oursBudget():
		return Decision{Action: DisownBudget, HandTo: to, Result: result}
	case in.ClusterVersion != nil && holdsOurs(in.ClusterVersion):
		return Decision{Action: Unclaim, Result: result}
	}
	return Decision{Result: result}
}

// yield removes a guard of ours beside the operator's own, which nobody would keep at the right size. It goes when the other
// stands.
func yield(in Inputs, result *patch.Result) Decision {
	switch ours := in.oursDeployment() || in.oursBudget(); {
	case ours && !in.operatorStands():
		return Decision{Result: &patch.Result{State: patch.Progressing, Reason: ReasonGivingBack,
			Message: "Waiting for the guards of the etcd operator to be ready before this one is removed"}}
	case in.oursBudget():
		return Decision{Action: DeleteBudget, Result: result}
	case in.oursDeployment():
		return Decision{Action: DeleteDeployment, Result: result}
	}
	return letGo(in, result)
}

// remove is for one node: there is to be no guard and no budget, whoever left them there.
func remove(in Inputs, c claim) Decision {
	static := in.mayBeStatic()
	result := &patch.Result{State: patch.Progressing, Reason: ReasonRemoving,
		Message: "On one control-plane node a guard only blocks drains; it is being removed"}
	voters, _ := votes(in.Members)
	switch {
	case in.Deployment == nil && in.Budget == nil && c.ours && !static:
		return Decision{Action: Unclaim, Result: result}
	case in.Deployment == nil && in.Budget == nil && c.ours:
		return Decision{Result: &patch.Result{State: patch.InForce, Reason: ReasonAsExpected, Message: "There is no guard on the one control-plane node, " +
			"and the cluster-version-operator is kept from making one; minor upgrades wait until this is given back" + in.Cluster.UnknownValues()}}
	case in.Deployment == nil && in.Budget == nil:
		return Decision{Result: &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded,
			Message: "There is no guard on the one control-plane node, as there should be" + in.Cluster.UnknownValues()}}
	case in.Members == nil:
		return Decision{Result: &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForMembers,
			Message: "The guard is to be removed, but the members of etcd cannot be read; it stays until they can"}}
	case voters > 1:
		return Decision{Result: &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForMembers,
			Message: "The guard is to be removed, but etcd still has several members, whose quorum it keeps; it goes when there is one"}}
	case static && !c.inForce():
		return claiming(c, "only blocks drains on one control-plane node")
	case in.Budget != nil && !leaving(in.Budget):
		return Decision{Action: DeleteBudget, Result: result}
	case in.Deployment != nil && !leaving(in.Deployment):
		return Decision{Action: DeleteDeployment, Result: result}
	}
	return Decision{Result: result}
}

// claiming is the next step to keep the cluster-version-operator away from a guard that has the faults.
func claiming(c claim, faults ...string) Decision {
	const price = "; minor upgrades wait until this is given back"
	result := &patch.Result{State: patch.Progressing, Reason: ReasonTakingOver}
	if c.whole {
		result.Message = "Waiting for the cluster-version-operator to let go of the guard" + price + ". If this lasts, see whether it runs"
		return Decision{Result: result}
	}
	result.Message = "Telling the cluster-version-operator to let go of the guard"
	if len(faults) > 0 {
		result.Message += ", which " + listed(faults)
	}
	result.Message += price
	return Decision{Action: Claim, ClusterVersion: c.intent(), Result: result}
}

// keep is for everywhere else: there is to be a guard of the right strength at every moment.
func keep(in Inputs, c claim) Decision {
	want, held := in.strengthOf()
	if held {
		return Decision{Result: &patch.Result{State: patch.Progressing, Reason: ReasonMembersUnhealthy,
			Message: "The guard is stricter than it need be, and stays so until etcd is known to have as many healthy members as the topology expects"}}
	}
	apply, err := in.intents()
	if err != nil {
		return Decision{Result: invalid(err)}
	}
	ours, static := in.oursDeployment() || in.oursBudget() || c.ours, in.mayBeStatic()
	settled := !apply.deployment && !apply.budget && len(releaseAnnotations(in.Deployment)) == 0 && len(releaseAnnotations(in.Budget)) == 0
	whole := (!in.oursDeployment() || !apply.deployment) && (!in.oursBudget() || !apply.budget)
	switch {
	case in.fits(want) && !ours:
		return Decision{Result: &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded, Message: "The guard that is there has the right size" + in.Cluster.UnknownValues()}}
	case in.fits(want) && static && !c.theirs && in.likeRelease(want) && whole:
		return letGo(in, &patch.Result{State: patch.Progressing, Reason: ReasonGivingBack,
			Message: "The release's own guard is right for this number of members; giving it back to the cluster-version-operator"})
	case !ours && static && !c.theirs && in.likeRelease(want) && in.fromRelease():
		return Decision{Result: &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject, Message: "The guard " + listed(in.faults(want)) +
			"; the cluster-version-operator writes it again by itself, so no upgrade has to wait. If this lasts, see whether it runs"}}
	case in.Deployment == nil && in.Image == "":
		return letGo(in, &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject,
			Message: "There is no guard, and no image to make one with; the cluster-version-operator or the etcd operator makes one, or set an image"})
	case (in.Deployment == nil || !in.oursDeployment()) && (in.ClientSecret != Present || in.CABundle != Present):
		return Decision{Result: certificateMissing(in)}
	case static && (!c.whole || (!c.observed && !settled)):
		return claiming(c, in.faults(want)...)
	case (in.Deployment != nil && leaving(in.Deployment)) || (in.Budget != nil && leaving(in.Budget)):
		return Decision{Result: &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject,
			Message: "The guard is being deleted; it is made again when it is gone"}}
	}
	return in.write(want, apply)
}

// likeRelease tells whether the static manifest would make a guard of this strength on the nodes that have members.
func (in Inputs) likeRelease(want strength) bool {
	return want == strength{staticReplicas, staticReplicas - staticMaxUnavailable} && in.mode() != configv1.HighlyAvailableArbiterMode
}

// fromRelease tells whether the cluster-version-operator is known to write the guard. Where its manifest is right for the cluster it mends
// by itself whatever is wrong with what is there, and a claim would have to wait for that very operator.
func (in Inputs) fromRelease() bool {
	return (in.Deployment != nil && managedBy(in.Deployment, ClusterVersionOperator)) || (in.Budget != nil && managedBy(in.Budget, ClusterVersionOperator))
}

func certificateMissing(in Inputs) *patch.Result {
	var which []string
	if in.ClientSecret != Present {
		which = append(which, "the Secret "+ClientSecret)
	}
	if in.CABundle != Present {
		which = append(which, "the ConfigMap "+CABundle)
	}
	missing := which[0]
	if len(which) > 1 {
		missing += " and " + which[1]
	}
	return &patch.Result{State: patch.Waiting, Reason: ReasonCertificateMissing, Message: fmt.Sprintf(
		"A guard could not ask etcd for its health without %s in the namespace %s; none is made or changed until they are there", missing, Namespace)}
}

// intents are what to apply, and whether applying would change anything.
type intents struct {
	host               Host
	deployment, budget bool
}

func (in Inputs) intents() (intents, error) {
	out := intents{host: in.host(), deployment: true, budget: true}
	if in.Deployment != nil {
		intent, err := deploymentIntent(out.host)
		if err != nil {
			return intents{}, err
		}
		same, err := holds(in.Deployment, intent)
		if err != nil {
			return intents{}, err
		}
		out.deployment = !same || len(in.unsetDeployment()) > 0
	}
	if in.Budget != nil {
		intent, err := budgetIntent(out.host)
		if err != nil {
			return intents{}, err
		}
		same, err := holds(in.Budget, intent)
		if err != nil {
			return intents{}, err
		}
		out.budget = !same || len(in.unsetBudget()) > 0
	}
	return out, nil
}

// write is the next step when nobody else writes. Where both parts change, the one goes first that makes the guard stricter, or
// loosens it less, and the budget where that is equal: what is there between the two writes is never looser than the looser of
// before and after.
func (in Inputs) write(want strength, apply intents) Decision {
	result := &patch.Result{State: patch.Progressing, Reason: ReasonRollingOut, Message: "The guard is being written"}
	budgetFirst := true
	switch live, both := in.live(); {
	case both:
		ifBudget, ifDeployment := max(live.replicas-(want.replicas-want.floor), 0), floorOf(in.Budget, want.replicas)
		budgetFirst = ifBudget >= ifDeployment
	case in.Deployment != nil:
		budgetFirst = replicasOf(in.Deployment) >= want.replicas
	}
	switch {
	case apply.budget && (budgetFirst || !apply.deployment):
		intent, err := budgetIntent(apply.host)
		if err != nil {
			return Decision{Result: invalid(err)}
		}
		return Decision{Action: ApplyBudget, Budget: intent, Create: in.Budget == nil, Unset: in.unsetBudget(), TakeFrom: takeFrom(in.Budget == nil), Result: result}
	case apply.deployment:
		intent, err := deploymentIntent(apply.host)
		if err != nil {
			return Decision{Result: invalid(err)}
		}
		return Decision{Action: ApplyDeployment, Deployment: intent, Create: in.Deployment == nil, Unset: in.unsetDeployment(), TakeFrom: takeFrom(in.Deployment == nil), Result: result}
	}
	if keys := releaseAnnotations(in.Deployment); len(keys) > 0 {
		return Decision{Action: TidyDeployment, Annotations: keys, Result: result}
	}
	if keys := releaseAnnotations(in.Budget); len(keys) > 0 {
		return Decision{Action: TidyBudget, Annotations: keys, Result: result}
	}
	return Decision{}
}

func takeFrom(create bool) []string {
	if create {
		return nil
	}
	return []string{ClusterVersionOperator, Released}
}

// unsetBudget: a budget counts from one side only, and the API server refuses both.
func (in Inputs) unsetBudget() []string {
	if in.Budget != nil && in.Budget.Spec.MinAvailable != nil {
		return []string{FieldMinAvailable}
	}
	return nil
}

// unsetDeployment: with an arbiter the nodes are chosen by affinity, and the release's selector would leave the arbiter out.
func (in Inputs) unsetDeployment() []string {
	if in.Deployment != nil && in.mode() == configv1.HighlyAvailableArbiterMode && len(in.Deployment.Spec.Template.Spec.NodeSelector) > 0 {
		return []string{FieldNodeSelector}
	}
	return nil
}

func deploymentIntent(h Host) (*appsv1ac.DeploymentApplyConfiguration, error) {
	intent := &appsv1ac.DeploymentApplyConfiguration{}
	err := convert(h.deployment(), intent)
	intent.Status = nil
	return intent, err
}

func budgetIntent(h Host) (*policyv1ac.PodDisruptionBudgetApplyConfiguration, error) {
	intent := &policyv1ac.PodDisruptionBudgetApplyConfiguration{}
	err := convert(h.disruptionBudget(), intent)
	intent.Status = nil
	return intent, err
}

// convert goes through JSON, which the API's types and their apply configurations share. Of what the guard sets, no zero value
// is left out or added, but for the status.
func convert(from, to any) error {
	encoded, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(encoded, to)
	}
	if err != nil {
		return fmt.Errorf("making an apply configuration: %w", err)
	}
	return nil
}

// holds tells whether applying the intent would change nothing. Fields whose absence is ours count as applied: the API server
// keeps us as the owner of what we removed. So does the annotation in which patch/apply remembers what it replaced.
func holds(live metav1.Object, intent any) (bool, error) {
	own, err := ownership.Applied(live, FieldOwner, "")
	if err != nil {
		return false, err
	}
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, fmt.Errorf("reading a live object: %w", err)
	}
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(intent)
	if err != nil {
		return false, fmt.Errorf("reading an intent: %w", err)
	}
	absent := fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", patch.ReplacedAnnotation(Name)))
	own.Leaves().Iterate(func(path fieldpath.Path) {
		names := make([]string, 0, len(path))
		for _, element := range path {
			if element.FieldName == nil {
				return
			}
			names = append(names, *element.FieldName)
		}
		if !has(have, names) && !has(want, names) {
			absent.Insert(path.Copy())
		}
	})
	return ownership.Holds(have, want, own.Difference(absent)), nil
}

func has(object map[string]any, path []string) bool {
	_, found, err := unstructured.NestedFieldNoCopy(object, path...)
	return err == nil && found
}
