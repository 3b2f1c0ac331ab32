// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/topology"
)

// checks returns the preconditions of the patch, in order. The first that returns a result ends the decision.
func checks() patch.Chain[Inputs] {
	return patch.Chain[Inputs]{
		{Name: "Valid", Evaluate: checkValid},
		{Name: "TopologyKnown", Evaluate: func(in Inputs) *patch.Result { return patch.TopologyKnown(in.Cluster) }},
		{Name: "OptedOut", OwnedFields: patch.ReleaseFields, Evaluate: checkOptedOut},
		{Name: "Exists", OwnedFields: patch.ReleaseFields, Evaluate: checkExists},
		{Name: "SingleReplica", OwnedFields: patch.ReleaseFields, Evaluate: checkSingleReplica},
		{Name: "NoMachines", OwnedFields: patch.ReleaseFields, Evaluate: checkNoMachines},
	}
}

// checkValid also refuses unreadable managedFields, which have no reliable owners.
func checkValid(in Inputs) *patch.Result {
	err := in.Validate()
	if err == nil {
		_, err = overrides.Read(in.ClusterVersion, FieldOwner, Override())
	}
	for _, o := range in.objects() {
		if err == nil {
			_, err = ownership.Managers(o, FieldReplicas)
		}
	}
	if err != nil {
		return patch.Invalid(err)
	}
	return nil
}

func checkOptedOut(in Inputs) *patch.Result {
	if !slices.ContainsFunc(in.objects(), func(o object) bool { return patch.OptsOut(o, approver.Name) }) {
		return nil
	}
	return newResult(patch.OptedOut, ReasonOptedOut, "The annotation "+patch.OptOutAnnotation+
		" keeps this module away; remove it to have the stock approver approve no client certificates")
}

func checkExists(in Inputs) *patch.Result {
	if in.Deployment != nil && in.Deployment.DeletionTimestamp == nil {
		return nil
	}
	return newResult(patch.NotNeeded, ReasonNotNeeded, "There is no stock approver, so nothing in the cluster approves requests")
}

func checkSingleReplica(in Inputs) *patch.Result {
	if topology.SingleReplica(in.Cluster.ControlPlane.Mode) {
		return nil
	}
	return newResult(patch.NotNeeded, ReasonNotNeeded,
		"The control plane is not a single node, so the stock approver is left alone"+in.Cluster.UnknownValues())
}

func checkNoMachines(in Inputs) *patch.Result {
	switch in.Machines {
	case approver.MachinesAbsent:
		return nil
	case approver.MachinesPresent:
		return newResult(patch.NotNeeded, ReasonNotNeeded, "There are Machines, which confirm the identity of a node, so the stock approver is left alone")
	case approver.MachinesUnknown:
	}
	return newResult(patch.Waiting, ReasonWaitingForMachines, "It is not known yet whether there are Machines; nothing is changed until then")
}
