// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/topology"
)

// Checks are the preconditions of the graceful shutdown, in order.
func Checks() patch.Chain[Inputs] {
	return patch.Chain[Inputs]{
		{Name: "Valid", Evaluate: checkValid},
		{Name: "TopologyKnown", Evaluate: func(in Inputs) *patch.Result { return patch.TopologyKnown(in.Cluster) }},
		{Name: "NodesKnown", Evaluate: func(in Inputs) *patch.Result { return ready(in.Nodes != nil, "The nodes") }},
		{Name: "ObjectsOwned", Evaluate: checkObjectsOwned},
		{Name: "OptedOut", OwnedFields: patch.ReleaseFields, Evaluate: checkOptedOut},
		{Name: "Wanted", OwnedFields: patch.ReleaseFields, Evaluate: checkWanted},
		{Name: "PoolThere", Evaluate: checkPoolThere},
		{Name: "KubeletConfigFree", OwnedFields: patch.ReleaseFields, Evaluate: checkKubeletConfigFree},
		{Name: "PodsKnown", Evaluate: func(in Inputs) *patch.Result { return ready(in.Pods != nil, "The pods of the control-plane node") }},
	}
}

func checkValid(in Inputs) *patch.Result {
	if err := in.Validate(); err != nil {
		return patch.Invalid(err)
	}
	return nil
}

func ready(known bool, what string) *patch.Result {
	if known {
		return nil
	}
	return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForNodes, Message: what + " have not been read yet; nothing changes until they are"}
}

func checkObjectsOwned(in Inputs) *patch.Result {
	for _, object := range in.shutdownObjects() {
		others, err := ownership.Others(object, ".spec", FieldOwner)
		if err != nil {
			return patch.Invalid(err)
		}
		if len(others) > 0 {
			return &patch.Result{State: patch.Blocked, Reason: patch.ReasonFieldOwnedByOther, Message: fmt.Sprintf(
				"The spec of %s is owned by %s and stays as it is; delete that object to enable graceful shutdown", object.GetName(), patch.Quoted(others))}
		}
	}
	return nil
}

func checkOptedOut(in Inputs) *patch.Result {
	objects := in.shutdownObjects()
	if pool := in.masterPool(); pool != nil {
		objects = append(objects, pool)
	}
	if in.OptedOut() || slices.ContainsFunc(objects, func(o metav1.Object) bool { return patch.OptsOut(o, machineconfig.Name) }) {
		return optedOut("enable graceful shutdown")
	}
	return nil
}

func optedOut(purpose string) *patch.Result {
	return &patch.Result{State: patch.OptedOut, Reason: patch.ReasonOptedOut,
		Message: "The annotation " + patch.OptOutAnnotation + " keeps this module away; remove it to " + purpose}
}

// checkWanted reports clusters with other nodes, because pods of a node that shuts down gracefully stay Ready
// (U-MCO-8).
func checkWanted(in Inputs) *patch.Result {
	message := ""
	switch {
	case in.Graceful == GracefulOn:
		return nil
	case in.Graceful == GracefulOff:
		message = "Graceful shutdown is switched off"
	case topology.ReadingOf(in.Cluster.ControlPlane.Mode).Mode != configv1.SingleReplicaTopologyMode:
		message = "The nodes of this control plane are drained before they restart"
	case len(in.Nodes) == 0:
		message = "There is no node"
	case len(in.Nodes) != 1:
		message = "There are other nodes, which would still send requests to the pods of a node that shuts down gracefully"
	default:
		return nil
	}
	return notNeeded(message + in.Cluster.UnknownValues())
}

func notNeeded(message string) *patch.Result {
	return &patch.Result{State: patch.NotNeeded, Reason: patch.ReasonNotNeeded, Message: message}
}

func checkPoolThere(in Inputs) *patch.Result {
	if pool := in.masterPool(); pool != nil {
		if _, labelled := pool.Labels[machineconfig.MasterPoolLabel]; labelled {
			return nil
		}
	}
	return &patch.Result{State: patch.Waiting, Reason: patch.ReasonWaitingForObject,
		Message: "There is no MachineConfigPool master with the label " + machineconfig.MasterPoolLabel + ", which the KubeletConfig selects"}
}

// checkKubeletConfigFree: the operator renders a complete kubelet.conf from each KubeletConfig of a pool, and the last
// one wins.
func checkKubeletConfigFree(in Inputs) *patch.Result {
	for i := range in.KubeletConfigs {
		other := &in.KubeletConfigs[i]
		selector, err := metav1.LabelSelectorAsSelector(other.Spec.MachineConfigPoolSelector)
		if other.Name == machineconfig.ShutdownName || err != nil || !selector.Matches(labels.Set(in.masterPool().Labels)) {
			continue
		}
		message := "Another KubeletConfig selects the master pool, and a second one would replace its settings; " +
			"add shutdownGracePeriod and shutdownGracePeriodCriticalPods to it"
		if periods, err := readGracePeriods(other); err != nil || periods != (machineconfig.GracePeriods{}) {
			message = "Another KubeletConfig of the master pool sets grace periods for shutdowns; they stay"
		}
		return &patch.Result{State: patch.Blocked, Reason: patch.ReasonFieldOwnedByOther, Message: message}
	}
	return nil
}
