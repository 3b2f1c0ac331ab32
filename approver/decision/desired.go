// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/patch/ownership"
)

// Decision is the next write: at most one of Config, Deployment and ClusterVersion, in the order of the package's
// documentation. After it all objects are read again.
type Decision struct {
	Config                     ConfigStep
	Deployment, ClusterVersion patch.Step
	Result                     *patch.Result // nil when nothing is left to write: see Observe
}

// ConfigStep is the Step of the ConfigMap. An intent that does not create it forces ownership of the text, which has
// other owners. A release sets Text and removes EditAnnotation.
type ConfigStep struct {
	patch.Step
	Text *string // nil removes the key
}

// Decide returns the next write. The stock approver is restricted only where it has no second source (R-APP-1,
// R-SNO-12).
func Decide(in Inputs) Decision {
	switch result, fields := checks().Run(in); {
	case result != nil && fields == patch.ReleaseFields:
		return release(in, result)
	case result != nil:
		return Decision{Result: result}
	}
	claim, err := overrides.Read(in.ClusterVersion, FieldOwner, Override())
	if err != nil {
		return Decision{Result: patch.Invalid(err)}
	}
	if in.Mode == Off {
		return turnOff(in, claim)
	}
	return disableFlow(in, claim)
}

func newResult(state patch.State, reason, message string) *patch.Result {
	return &patch.Result{State: state, Reason: reason, Message: message}
}

func restarting(message string) *patch.Result {
	return newResult(patch.Progressing, ReasonRestarting, message)
}

func apply(spec *appsv1ac.DeploymentSpecApplyConfiguration, result *patch.Result) Decision {
	return Decision{Deployment: patch.Step{Intent: appsv1ac.Deployment(DeploymentName, Namespace).WithSpec(spec), Result: result}, Result: result}
}

func releaseDeployment(result *patch.Result) Decision {
	return Decision{Deployment: patch.Step{Release: true, Result: result}, Result: result}
}

func releaseOverride(result *patch.Result) Decision {
	return Decision{ClusterVersion: patch.Step{Release: true, Result: result}, Result: result}
}

func disableFlow(in Inputs, claim overrides.Claim) Decision {
	if disabled, err := NodeClientDisabled(in.text()); err != nil || !disabled {
		return in.edit()
	}
	replicaManagers, _ := ownership.Managers(in.Deployment, FieldReplicas) // checkValid has read them
	switch token := in.token(); {
	case slices.Contains(replicaManagers, FieldOwner):
		return releaseDeployment(restarting("Restoring the replica of the stock approver, which starts with its node-client flow disabled"))
	case claim.Releasable:
		return releaseOverride(restarting("Removing the override for the stock approver; its node-client flow stays disabled"))
	case token == "" && ownership.Owns(in.Deployment, FieldOwner):
		return releaseDeployment(restarting("Removing the restart annotation, because another client disables the node-client flow"))
	case token != "" && in.Deployment.Spec.Template.Annotations[EditAnnotation] != token:
		template := corev1ac.PodTemplateSpec().WithAnnotations(map[string]string{EditAnnotation: token})
		return apply(appsv1ac.DeploymentSpec().WithTemplate(template),
			restarting("Restarting the stock approver, which reads its configuration only when it starts"))
	}
	return Decision{}
}

// created is the value of EditAnnotation on a ConfigMap that this module created. On others it is
// RESOURCEVERSION/FORMER-OWNER.
const created = "made"

func (in Inputs) edit() Decision {
	old := in.ConfigMap
	text, err := DisableNodeClient(in.text())
	switch {
	case old != nil && old.DeletionTimestamp != nil:
		return Decision{Result: restarting("The configuration of the stock approver is being deleted; another is created afterwards")}
	case errors.Is(err, ErrNodeClientEnabled):
		return Decision{Result: newResult(patch.Blocked, ReasonFieldOwnedByOther, "The configuration of the stock approver keeps its "+
			"node-client flow enabled, and is not changed; remove the line there, or use the mode "+string(Off))}
	case err != nil:
		return Decision{Result: newResult(patch.Failed, ReasonInvalid,
			"Nothing was written, and the stock approver may approve client certificates: "+err.Error())}
	case in.edited():
		return Decision{Result: newResult(patch.Reverted, ReasonReverted, "Another client removed the line from the configuration of the stock "+
			"approver, which approves client certificates again; to restore the line, remove the annotation "+EditAnnotation+" there, or opt out")}
	case old != nil && ptr.Deref(old.Immutable, false):
		return Decision{Result: newResult(patch.Blocked, ReasonFieldOwnedByOther,
			"The configuration of the stock approver is immutable; replace it by one with the node-client flow disabled")}
	}
	intent, edit := corev1ac.ConfigMap(ConfigMapName, Namespace).WithData(map[string]string{ConfigKey: text}), created
	if old != nil {
		intent.WithUID(old.UID).WithResourceVersion(old.ResourceVersion)
		edit = old.ResourceVersion + "/" + in.textOwner()
	}
	intent.WithAnnotations(map[string]string{EditAnnotation: edit})
	return Decision{Config: ConfigStep{Step: patch.Step{Intent: intent, Create: old == nil}},
		Result: restarting("Disabling the node-client flow of the stock approver")}
}

func turnOff(in Inputs, claim overrides.Claim) Decision {
	managed := in.ClusterVersion != nil && (claim.Releasable || ownership.ManagedBy(in.Deployment, overrides.ClusterVersionOperator))
	owners, _ := ownership.Others(in.Deployment, FieldReplicas, FieldOwner, overrides.ClusterVersionOperator) // checkValid has read them
	contested := claim.Blocked(OverrideSubject)
	switch runs := in.replicas() != 0; {
	case runs && len(owners) > 0:
		owned := patch.OwnedByOther(FieldReplicas, owners...)
		if claim.Releasable { // an override without effect would still block upgrades
			return releaseOverride(&owned)
		}
		return Decision{Result: &owned}
	case managed && contested != nil:
		return Decision{Result: contested}
	case managed && !claim.Complete:
		claiming := newResult(patch.Progressing, ReasonTakingOver,
			"Setting an override for the stock approver; it blocks upgrades of the cluster until it is removed")
		return Decision{ClusterVersion: patch.Step{Intent: claim.Intent(), Result: claiming}, Result: claiming}
	case managed && !claim.Observed && runs:
		return Decision{Result: newResult(patch.Progressing, ReasonTakingOver,
			"Waiting for the cluster-version-operator to observe the override for the stock approver; if this takes long, check that it runs")}
	case runs:
		return apply(appsv1ac.DeploymentSpec().WithReplicas(0), restarting("Turning the stock approver off"))
	case in.edited():
		return in.restore(restarting("The stock approver is off; restoring its configuration"))
	}
	return Decision{}
}

// release releases the override last: without it the cluster-version-operator writes the Deployment.
func release(in Inputs, result *patch.Result) Decision {
	switch {
	case in.edited():
		return in.restore(result)
	case in.Deployment != nil && ownership.Owns(in.Deployment, FieldOwner):
		return releaseDeployment(result)
	case in.ClusterVersion != nil && ownership.Owns(in.ClusterVersion, FieldOwner):
		return releaseOverride(result)
	}
	return Decision{Result: result}
}

// restore removes the inserted line, or deletes the ConfigMap if this module created it and it has no other data.
func (in Inputs) restore(result *patch.Result) Decision {
	text, _ := enableNodeClient(in.text())
	_, hasKey := in.ConfigMap.Data[ConfigKey]
	edit, formerOwner, _ := strings.Cut(in.ConfigMap.Annotations[EditAnnotation], "/")
	config := ConfigStep{Step: patch.Step{Release: true, NewOwner: cmp.Or(in.textOwner(), formerOwner, patch.ReleasedManager(approver.Name))}}
	switch {
	case in.ConfigMap.DeletionTimestamp != nil:
		config = ConfigStep{}
	case text != "" || formerOwner != "":
		config.Text = &text
	case edit == created && hasKey && len(in.ConfigMap.Data)+len(in.ConfigMap.BinaryData) == 1:
		config = ConfigStep{Step: patch.Step{Delete: true}}
	}
	return Decision{Config: config, Result: result}
}

func (in Inputs) text() string {
	if in.ConfigMap == nil {
		return ""
	}
	return in.ConfigMap.Data[ConfigKey]
}

// edited reports whether this module has edited the ConfigMap, even if its line was removed since.
func (in Inputs) edited() bool {
	return in.ConfigMap != nil && in.ConfigMap.Annotations[EditAnnotation] != ""
}

// token identifies the last edit, so that each one restarts the stock approver.
func (in Inputs) token() string {
	if !in.edited() {
		return ""
	}
	version, _, _ := strings.Cut(in.ConfigMap.Annotations[EditAnnotation], "/")
	return string(in.ConfigMap.UID) + "." + version
}

func (in Inputs) textOwner() string {
	owners, err := ownership.OthersAt(in.ConfigMap, fieldpath.MakePathOrDie("data", ConfigKey), FieldOwner)
	if _, hasKey := in.ConfigMap.Data[ConfigKey]; !hasKey || err != nil || len(owners) == 0 {
		return ""
	}
	return owners[0]
}

func (in Inputs) replicas() int32 { return ptr.Deref(in.Deployment.Spec.Replicas, 1) }
