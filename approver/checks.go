package approver

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// PatchChecks are the preconditions for keeping the stock approver from approving, in order. The first that has something to say ends
// the decision: where nothing is needed or a person wants it so, what the module has is given back, otherwise everything stays as it is.
// They have nothing to do with Checks, which are about requests.
func PatchChecks() patch.Chain[PatchInputs] {
	return patch.Chain[PatchInputs]{
		{Name: "Valid", Evaluate: checkValid},
		{Name: "TopologyKnown", Evaluate: func(in PatchInputs) *patch.Result { return patch.TopologyKnown(in.Cluster) }},
		{Name: "Readable", Evaluate: checkReadable},
		{Name: "OptedOut", Evaluate: checkOptedOut},
		{Name: "StockThere", Evaluate: checkStockThere},
		{Name: "SingleReplica", Evaluate: checkSingleReplica},
		{Name: "NoMachines", Evaluate: checkNoMachines},
	}
}

func checkValid(in PatchInputs) *patch.Result {
	if err := in.Validate(); err != nil {
		return invalid(err)
	}
	return nil
}

// checkReadable refuses managedFields that say nothing: whose a field is would be a guess.
func checkReadable(in PatchInputs) *patch.Result {
	if _, err := readClaim(in.ClusterVersion); err != nil {
		return invalid(err)
	}
	for _, object := range in.annotated() {
		if _, err := ownership.Managers(object, FieldReplicas); err != nil {
			return invalid(err)
		}
	}
	return nil
}

// annotated are the objects on which a person may keep the module away.
func (in PatchInputs) annotated() []metav1.Object {
	var objects []metav1.Object
	if in.Deployment != nil {
		objects = append(objects, in.Deployment)
	}
	if in.ConfigMap != nil {
		objects = append(objects, in.ConfigMap)
	}
	if in.ClusterVersion != nil {
		objects = append(objects, in.ClusterVersion)
	}
	return objects
}

func checkOptedOut(in PatchInputs) *patch.Result {
	if !slices.ContainsFunc(in.annotated(), func(o metav1.Object) bool { return patch.OptsOut(o.GetAnnotations(), Name) }) {
		return nil
	}
	return &patch.Result{State: patch.OptedOut, Reason: ReasonOptedOut, Message: "The annotation " + patch.OptOutAnnotation +
		" keeps this module away; remove it to have the stock approver approve no client certificate by itself"}
}

func checkStockThere(in PatchInputs) *patch.Result {
	if in.Deployment != nil && in.Deployment.DeletionTimestamp == nil {
		return nil
	}
	return &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded, Message: "There is no stock approver, so nothing approves by itself"}
}

// checkSingleReplica leaves the stock approver alone wherever the control plane has several nodes, or is outside of the cluster.
func checkSingleReplica(in PatchInputs) *patch.Result {
	if alone(*in.Cluster) {
		return nil
	}
	return &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded,
		Message: "The control plane is not a single node, so the stock approver is left alone" + in.Cluster.UnknownValues()}
}

// checkNoMachines leaves it alone where Machines are the second source.
func checkNoMachines(in PatchInputs) *patch.Result {
	switch in.Machines {
	case Absent:
		return nil
	case Present:
		return &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded,
			Message: "There are Machines, which confirm who a node is, so the stock approver is left alone"}
	case Unknown:
	}
	return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForMachines,
		Message: "Waiting to know whether there are Machines; nothing is changed until then"}
}

// letsGo tells whether a result gives everything back. The others only mean that nothing can be said.
func letsGo(state patch.State) bool {
	switch state {
	case patch.NotNeeded, patch.OptedOut:
		return true
	case patch.InForce, patch.WouldChange, patch.Progressing, patch.Waiting, patch.Blocked, patch.Reverted, patch.Failed:
		return false
	}
	return false
}

func invalid(err error) *patch.Result {
	return &patch.Result{State: patch.Failed, Reason: ReasonInvalid, Message: "The inputs cannot be understood: " + err.Error()}
}

// OverrideOwnedByOther is the result where somebody else says in spec.overrides what is to become of the stock approver. That is theirs:
// it decides over the upgrades of the whole cluster.
func OverrideOwnedByOther(managers ...string) *patch.Result {
	by := ""
	if len(managers) > 0 {
		by = " by " + quoted(managers)
	}
	return &patch.Result{State: patch.Blocked, Reason: ReasonFieldOwnedByOther, Message: "The entry for the stock approver in " + FieldOverrides +
		" is owned" + by + " and stays as it is; remove it there, or use the mode " + string(NodeClientOff)}
}

func quoted(names []string) string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, fmt.Sprintf("%q", name))
	}
	return strings.Join(out, ", ")
}
