package approver

import (
	"errors"
	"slices"
	"strings"

	configv1ac "github.com/openshift/client-go/config/applyconfigurations/config/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// Action is one write.
type Action string

// The actions. Those on an object that is there are bound to what was read of it (UID and resourceVersion), and refused by the
// API server when it has changed since.
const (
	// Nothing is to be written; Result says why, or Observe tells how the patch stands.
	Nothing Action = ""
	// ApplyConfig applies ConfigMap: the configuration with our line in it, and EditAnnotation. It takes the text from whoever owns
	// it, because all that they wrote stays in it. Where Create is set there was none, and it takes from nobody.
	ApplyConfig Action = "ApplyConfig"
	// RestoreConfig writes Text (nil: removes the key) and removes EditAnnotation, in one merge patch under the field manager HandTo.
	RestoreConfig Action = "RestoreConfig"
	// DeleteConfig deletes the ConfigMap, which this module made.
	DeleteConfig Action = "DeleteConfig"
	// ApplyDeployment applies Deployment through patch/apply; what TakeFrom owns may be taken, and is remembered.
	ApplyDeployment Action = "ApplyDeployment"
	// ReleaseDeployment gives everything on the Deployment back through patch/apply.
	ReleaseDeployment Action = "ReleaseDeployment"
	// Claim applies ClusterVersion: the entry that keeps the cluster-version-operator away. Unclaim gives it back by applying nothing.
	Claim   Action = "Claim"
	Unclaim Action = "Unclaim"
)

// Decision is the next write: carry it out, read everything again, decide again. There is only ever one, so that the order is
// nobody's choice, and a crash can only fall between two of them.
//
//	node-client-off   ApplyConfig, ApplyDeployment (restarts the stock approver)
//	off               Claim, (the cluster-version-operator has seen it), ApplyDeployment (no replicas)
//	letting go        RestoreConfig or DeleteConfig, ReleaseDeployment (restarts it, or gives it its replica back), Unclaim
//
// From one mode to the other, the new one is in force before the old one is given back.
type Decision struct {
	Action Action
	// ConfigMap, Deployment and ClusterVersion are what to apply, each set for its own action only. They are built anew on every
	// call, because one that was sent comes back filled with what the API server knows.
	ConfigMap      *corev1ac.ConfigMapApplyConfiguration
	Deployment     *appsv1ac.DeploymentApplyConfiguration
	ClusterVersion *configv1ac.ClusterVersionApplyConfiguration
	// Create tells that the ConfigMap was not there.
	Create bool
	// TakeFrom lists the managers from which a field of the Deployment may be taken.
	TakeFrom []string
	// Text is what RestoreConfig writes; nil removes the key.
	Text *string
	// HandTo is the manager that owns afterwards what RestoreConfig writes.
	HandTo string
	// Result is what there is to say meanwhile; nil when the patch stands as it is wanted, and Observe tells how.
	Result *patch.Result
}

// Desired is the whole decision about the stock approver: it is turned off only where there is no second source
// (R-SNO-12), and with it what is approved automatically (R-APP-1). It is pure.
func Desired(in PatchInputs) Decision {
	if result := PatchChecks().Run(in); result != nil {
		if letsGo(result.State) {
			return letGo(in, result)
		}
		return Decision{Result: result}
	}
	c, err := readClaim(in.ClusterVersion)
	if err != nil {
		return Decision{Result: invalid(err)}
	}
	if in.Mode == Off {
		return turnOff(in, c)
	}
	return disableFlow(in, c)
}

// disableFlow is NodeClientOff: first the configuration, then a restart that reads it, and at last what Off left behind.
func disableFlow(in PatchInputs, c claim) Decision {
	if disabled, err := NodeClientDisabled(in.text()); err != nil || !disabled {
		return in.edit()
	}
	switch token := in.token(); {
	case in.replicasOurs():
		return Decision{Action: ReleaseDeployment,
			Result: restarting("Giving the stock approver its replica back; it will read that its node-client flow is disabled")}
	case c.ours:
		return Decision{Action: Unclaim,
			Result: restarting("Giving the stock approver back to the cluster-version-operator; its node-client flow stays disabled")}
	case token == "" && holdsOurs(in.Deployment):
		return Decision{Action: ReleaseDeployment, Result: restarting("Somebody else disables the node-client flow now")}
	case token != "" && in.Deployment.Spec.Template.Annotations[EditAnnotation] != token:
		return Decision{Action: ApplyDeployment, Deployment: appsv1ac.Deployment(DeploymentName, Namespace).WithSpec(appsv1ac.DeploymentSpec().
			WithTemplate(corev1ac.PodTemplateSpec().WithAnnotations(map[string]string{EditAnnotation: token}))),
			Result: restarting("Restarting the stock approver, which reads its configuration only when it starts")}
	}
	return Decision{}
}

// made is the value of EditAnnotation on a ConfigMap that was not there before. Otherwise it is the resourceVersion that was edited, and
// who owned the configuration then.
const made = "made"

func restarting(message string) *patch.Result {
	return &patch.Result{State: patch.Progressing, Reason: ReasonRestarting, Message: message}
}

// edit puts our line into the configuration.
func (in PatchInputs) edit() Decision {
	old := in.ConfigMap
	text, err := DisableNodeClient(in.text())
	switch {
	case old != nil && old.DeletionTimestamp != nil:
		return Decision{Result: restarting("The configuration of the stock approver is being deleted; it is written when it is gone")}
	case errors.Is(err, ErrConfigContrary):
		return Decision{Result: &patch.Result{State: patch.Blocked, Reason: ReasonFieldOwnedByOther, Message: "The configuration of the stock approver " +
			"says that its node-client flow is not disabled, and that stays as it is; remove the line there, or use the mode " + string(Off)}}
	case err != nil:
		return Decision{Result: &patch.Result{State: patch.Failed, Reason: ReasonInvalid,
			Message: "Nothing was written, and the stock approver may approve client certificates by itself: " + err.Error()}}
	case in.edited():
		return Decision{Result: &patch.Result{State: patch.Reverted, Reason: ReasonReverted, Message: "Somebody took the line out of the configuration of " +
			"the stock approver, so it approves client certificates by itself again; remove the annotation " + EditAnnotation +
			" there to have the line back, or opt out"}}
	case old != nil && old.Immutable != nil && *old.Immutable:
		return Decision{Result: &patch.Result{State: patch.Blocked, Reason: ReasonFieldOwnedByOther,
			Message: "The configuration of the stock approver is immutable; make it anew with the node-client flow disabled"}}
	}
	intent, edit := corev1ac.ConfigMap(ConfigMapName, Namespace).WithData(map[string]string{ConfigKey: text}), made
	if old != nil {
		intent.WithUID(old.UID).WithResourceVersion(old.ResourceVersion)
		edit = old.ResourceVersion + "/" + in.textOwner()
	}
	intent.WithAnnotations(map[string]string{EditAnnotation: edit})
	return Decision{Action: ApplyConfig, ConfigMap: intent, Create: old == nil, Result: restarting("Disabling the node-client flow of the stock approver")}
}

// turnOff is Off: nothing of the stock approver runs. Then its configuration is its own again.
func turnOff(in PatchInputs, c claim) Decision {
	static := in.ClusterVersion != nil && (c.ours || managedBy(in.Deployment, ClusterVersionOperator))
	takingOver := func(message string) *patch.Result {
		return &patch.Result{State: patch.Progressing, Reason: ReasonTakingOver, Message: message}
	}
	if owners := in.replicaOwners(); len(owners) > 0 && in.replicas() != 0 {
		result := patch.OwnedByOther(FieldReplicas, owners...)
		if c.ours { // or it would keep the cluster from being upgraded for nothing
			return Decision{Action: Unclaim, Result: &result}
		}
		return Decision{Result: &result}
	}
	switch {
	case static && c.contrary:
		return Decision{Result: OverrideOwnedByOther(c.contraries...)}
	case static && c.atomic:
		return Decision{Result: &patch.Result{State: patch.Blocked, Reason: ReasonFieldOwnedByOther, Message: FieldOverrides +
			" of this release is one value that belongs to somebody else; add an entry for the stock approver with unmanaged: true there by hand"}}
	case static && !c.unmanaged:
		return Decision{Action: Claim, ClusterVersion: overrideIntent(),
			Result: takingOver("Telling the cluster-version-operator to let go of the stock approver; minor upgrades wait until this is given back")}
	case static && !c.observed && in.replicas() != 0:
		return Decision{Result: takingOver("Waiting for the cluster-version-operator to let go of the stock approver; if this lasts, see whether it runs")}
	case in.replicas() != 0:
		return Decision{Action: ApplyDeployment, TakeFrom: []string{ClusterVersionOperator},
			Deployment: appsv1ac.Deployment(DeploymentName, Namespace).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(0)),
			Result:     restarting("Turning the stock approver off")}
	case in.edited():
		return in.restore(restarting("The stock approver is off; giving its configuration back"))
	}
	return Decision{}
}

// letGo gives back what is held, one write at a time: the configuration before the restart that reads it, the Deployment before the
// entry that keeps the cluster-version-operator from writing it.
func letGo(in PatchInputs, result *patch.Result) Decision {
	switch {
	case in.edited():
		return in.restore(result)
	case in.Deployment != nil && holdsOurs(in.Deployment):
		return Decision{Action: ReleaseDeployment, Result: result}
	case in.ClusterVersion != nil && holdsOurs(in.ClusterVersion):
		return Decision{Action: Unclaim, Result: result}
	}
	return Decision{Result: result}
}

// restore takes our line out of the configuration, and the ConfigMap away when this module made it and there is nothing else in it.
func (in PatchInputs) restore(result *patch.Result) Decision {
	text, _ := EnableNodeClient(in.text())
	_, had := in.ConfigMap.Data[ConfigKey]
	_, whose, _ := strings.Cut(in.ConfigMap.Annotations[EditAnnotation], "/")
	switch {
	case in.ConfigMap.DeletionTimestamp != nil:
		return Decision{Result: result}
	case text != "" || whose != "":
		return Decision{Action: RestoreConfig, Text: &text, HandTo: in.handTo(), Result: result}
	case in.ConfigMap.Annotations[EditAnnotation] == made && had && len(in.ConfigMap.Data)+len(in.ConfigMap.BinaryData) == 1:
		return Decision{Action: DeleteConfig, Result: result}
	}
	return Decision{Action: RestoreConfig, HandTo: in.handTo(), Result: result}
}

// text is the configuration of the stock approver, empty where there is none.
func (in PatchInputs) text() string {
	if in.ConfigMap == nil {
		return ""
	}
	return in.ConfigMap.Data[ConfigKey]
}

// edited tells whether our line was put into this ConfigMap, whatever became of it.
func (in PatchInputs) edited() bool {
	return in.ConfigMap != nil && in.ConfigMap.Annotations[EditAnnotation] != ""
}

// token is another one after every edit of ours, also when somebody took the line out and the same line is put in again: between the
// two the stock approver may have started. Empty while somebody else disables the flow.
func (in PatchInputs) token() string {
	if !in.edited() {
		return ""
	}
	version, _, _ := strings.Cut(in.ConfigMap.Annotations[EditAnnotation], "/")
	return string(in.ConfigMap.UID) + "." + version
}

// textOwner is who owns the configuration now, beside this module; empty where nobody is known to.
func (in PatchInputs) textOwner() string {
	if _, has := in.ConfigMap.Data[ConfigKey]; !has {
		return ""
	}
	owners, err := ownership.OthersAt(in.ConfigMap, fieldpath.MakePathOrDie("data", ConfigKey), FieldOwner)
	if err != nil || len(owners) == 0 {
		return ""
	}
	return owners[0]
}

// handTo is who is to own the configuration when our line is gone.
func (in PatchInputs) handTo() string {
	if owner := in.textOwner(); owner != "" {
		return owner
	}
	if _, owner, _ := strings.Cut(in.ConfigMap.Annotations[EditAnnotation], "/"); owner != "" {
		return owner
	}
	return Released
}

func (in PatchInputs) replicas() int32 {
	if in.Deployment.Spec.Replicas == nil {
		return 1
	}
	return *in.Deployment.Spec.Replicas
}

// replicaOwners are those from whom the replicas are not taken.
func (in PatchInputs) replicaOwners() []string {
	owners, err := ownership.Others(in.Deployment, FieldReplicas, FieldOwner, ClusterVersionOperator)
	if err != nil {
		return []string{err.Error()}
	}
	return owners
}

// replicasOurs tells whether it is this module that scaled the stock approver.
func (in PatchInputs) replicasOurs() bool {
	owners, err := ownership.Managers(in.Deployment, FieldReplicas)
	return err == nil && slices.Contains(owners, FieldOwner)
}
