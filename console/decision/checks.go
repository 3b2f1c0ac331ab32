// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/operand"
	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/workload"
)

func checks() patch.Chain[target] {
	return patch.Chain[target]{
		{Name: "Valid", Evaluate: checkValid},
		{Name: "Managed", OwnedFields: patch.ReleaseFields, Evaluate: checkManaged},
		{Name: "Exists", Evaluate: func(o target) *patch.Result { return o.Exists() }},
		{Name: "OptedOut", OwnedFields: patch.ReleaseFields, Evaluate: checkOptedOut},
		{Name: "TopologyKnown", Evaluate: func(o target) *patch.Result { return patch.TopologyKnown(o.Cluster) }},
		{Name: "SingleReplica", OwnedFields: patch.ReleaseFields, Evaluate: checkSingleReplica},
		{Name: "NoConsoleOperator", OwnedFields: patch.ReleaseFields, Evaluate: checkNoConsoleOperator},
		{Name: "FieldsFree", OwnedFields: patch.ReleaseFields, Evaluate: checkFieldsFree},
		{Name: "ClusterVersionExists", Evaluate: checkClusterVersionExists},
		{Name: "OverrideFree", OwnedFields: patch.ReleaseFields, Evaluate: checkOverrideFree},
	}
}

func checkValid(o target) *patch.Result {
	if err := o.in.Validate(); err != nil {
		return patch.Invalid(err)
	}
	return nil
}

func checkManaged(o target) *patch.Result {
	if o.in.Operator == nil {
		return nil
	}
	switch o.in.Operator.Spec.ManagementState {
	case operatorv1.Removed:
		return &patch.Result{State: patch.NotNeeded, Reason: patch.ReasonNotNeeded,
			Message: "The managementState of the console is Removed, so the console operator deletes the Deployment"}
	case operatorv1.Unmanaged:
		return &patch.Result{State: patch.OptedOut, Reason: patch.ReasonOptedOut,
			Message: "The managementState of the console is Unmanaged; set it to Managed to have the Deployment follow the topology"}
	case operatorv1.Managed, operatorv1.Force:
	}
	return nil
}

func checkOptedOut(o target) *patch.Result {
	out := patch.OptsOut(o.Live, console.Name) ||
		o.in.Operator != nil && patch.OptsOut(o.in.Operator, console.Name) ||
		o.takenOver && o.in.ClusterVersion != nil && patch.OptsOut(o.in.ClusterVersion, console.Name)
	if !out {
		return nil
	}
	return &patch.Result{State: patch.OptedOut, Reason: patch.ReasonOptedOut,
		Message: "The annotation " + patch.OptOutAnnotation + " keeps this module away; remove it to have the Deployment follow the topology"}
}

// checkSingleReplica keeps two replicas: an override that changes nothing would still block upgrades.
func checkSingleReplica(o target) *patch.Result {
	if topology.SingleReplica(o.Cluster.Governing(o.Cluster.PoolFor(topology.ControlPlanePool))) {
		return nil
	}
	return &patch.Result{State: patch.NotNeeded, Reason: patch.ReasonNotNeeded,
		Message: "The topology has room for two replicas, the default of the Deployment" + o.Cluster.UnknownValues()}
}

var shapedByOperator = patch.Result{State: patch.NotNeeded, Reason: patch.ReasonNotNeeded, Message: "The console operator runs one replica by itself"}

// checkNoConsoleOperator releases fields that a console operator would overwrite.
func checkNoConsoleOperator(o target) *patch.Result {
	if o.Force {
		return nil
	}
	stock, err := stockOwners(o.Live)
	switch {
	case err != nil:
		return patch.Invalid(err)
	case len(stock) == 0:
		return nil
	case rollsOnOneNode(o.Live):
		result := shapedByOperator
		return &result
	}
	return &patch.Result{State: patch.Blocked, Reason: patch.ReasonFieldOwnedByOther, Message: fmt.Sprintf(
		"The Deployment is managed by %s, which does not follow the topology; update that operator, or start with --force-conflicts",
		patch.Quoted(stock))}
}

// stockOwners returns the console operators that own a field of the shape.
func stockOwners(live *appsv1.Deployment) ([]string, error) {
	var stock []string
	for _, field := range operand.Fields() {
		managers, err := ownership.Managers(live, field)
		if err != nil {
			return nil, err
		}
		stock = append(stock, slices.DeleteFunc(managers, func(m string) bool { return !slices.Contains(stockManagers, m) })...)
	}
	return stock, nil
}

// rollsOnOneNode reports whether one replica can roll on one node without an outage. For one replica, the stock
// operator's 25% and 25% equal 0 and 1 (U-CON-1).
func rollsOnOneNode(live *appsv1.Deployment) bool {
	unavailable, surge, ok := workload.Steps(live.Spec.Strategy, 1)
	return live.Spec.Replicas != nil && *live.Spec.Replicas == 1 && !separatesOwnPods(live) && ok && unavailable == 0 && surge > 0
}

// separatesOwnPods reports whether the pods of a Deployment must not share a node.
func separatesOwnPods(live *appsv1.Deployment) bool {
	required := func(d *appsv1.Deployment) int {
		return len(workload.AntiAffinityOf(d).RequiredDuringSchedulingIgnoredDuringExecution)
	}
	together := live.DeepCopy()
	workload.Separate(together, workload.SeparateNever)
	return required(together) < required(live)
}

// checkFieldsFree ignores fields that the cluster-version-operator releases.
func checkFieldsFree(o target) *patch.Result {
	if o.takenOver {
		return o.FieldsFree(overrides.ClusterVersionOperator)
	}
	return o.FieldsFree()
}

func checkClusterVersionExists(o target) *patch.Result {
	if !o.takenOver || o.in.ClusterVersion != nil || !ownership.ManagedBy(o.Live, overrides.ClusterVersionOperator) {
		return nil
	}
	return &patch.Result{State: patch.Waiting, Reason: patch.ReasonWaitingForObject,
		Message: "The cluster-version-operator manages the Deployment, and there is no ClusterVersion in which to override that"}
}

func checkOverrideFree(o target) *patch.Result {
	if !o.needsOverride() {
		return nil
	}
	claim, err := o.claim()
	if err != nil {
		return patch.Invalid(err)
	}
	return claim.Blocked("the " + o.Subject)
}
