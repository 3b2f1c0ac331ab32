package etcdguard

import (
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/solonode/sno/patch"
)

// check is a precondition, and what follows when it has something to say.
type check struct {
	patch.Check[Inputs]
	// letGo tells that the module gives back what it holds. Where it is false, everything stays as it is.
	letGo bool
}

const operatorGuardsCheck = "OperatorGuards"

func checks() []check {
	named := func(name string, letGo bool, evaluate func(Inputs) *patch.Result) check {
		return check{patch.Check[Inputs]{Name: name, Evaluate: evaluate}, letGo}
	}
	return []check{
		named("Valid", false, checkValid),
		named("TopologyKnown", false, checkTopologyKnown),
		named("Readable", false, checkReadable),
		named("OptedOut", true, checkOptedOut),
		named("EtcdHere", true, checkEtcdHere),
		named(operatorGuardsCheck, true, checkOperatorGuards),
		named("NoOperatorOwns", true, checkNoOperatorOwns),
		named("OverridesFree", true, checkOverridesFree),
		named("ClusterVersionThere", false, checkClusterVersionThere),
		named("NodesKnown", false, checkNodesKnown),
		named("Adoptable", false, checkAdoptable),
		named("FieldsFree", false, checkFieldsFree),
	}
}

// Checks are the preconditions for writing or removing the guard, in order. The first that has something to say ends the
// decision; whether the module then lets go or leaves everything as it is, Decide knows.
func Checks() patch.Chain[Inputs] {
	var chain patch.Chain[Inputs]
	for _, c := range checks() {
		chain = append(chain, c.Check)
	}
	return chain
}

func checkValid(in Inputs) *patch.Result {
	if err := in.Validate(); err != nil {
		return invalid(err)
	}
	return nil
}

func checkTopologyKnown(in Inputs) *patch.Result { return patch.TopologyKnown(in.Cluster) }

// checkReadable refuses managedFields that say nothing: whose a guard is would be a guess.
func checkReadable(in Inputs) *patch.Result {
	if _, err := in.owners(nil); err != nil {
		return invalid(err)
	}
	if _, err := readClaim(in.ClusterVersion); err != nil {
		return invalid(err)
	}
	return nil
}

func checkOptedOut(in Inputs) *patch.Result {
	var out bool
	for _, object := range in.annotated() {
		out = out || patch.OptsOut(object.GetAnnotations(), Name)
	}
	if !out {
		return nil
	}
	return &patch.Result{State: patch.OptedOut, Reason: ReasonOptedOut,
		Message: "The annotation " + patch.OptOutAnnotation + " keeps this module away; remove it to have the guard follow the topology"}
}

// annotated are the objects on which a person may keep the module away.
func (in Inputs) annotated() []metav1.Object {
	var objects []metav1.Object
	if in.Deployment != nil {
		objects = append(objects, in.Deployment)
	}
	if in.Budget != nil {
		objects = append(objects, in.Budget)
	}
	if in.ClusterVersion != nil {
		objects = append(objects, in.ClusterVersion)
	}
	if in.Etcd != nil {
		objects = append(objects, in.Etcd)
	}
	return objects
}

func checkEtcdHere(in Inputs) *patch.Result {
	if in.mode() != configv1.ExternalTopologyMode {
		return nil
	}
	return &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded, Message: "The control plane is External, so there is no etcd to guard in this cluster"}
}

// checkOperatorGuards stands back where today's operator guards. On one node it removes its guards by itself, but leaves those
// of earlier releases, so there is something to do.
func checkOperatorGuards(in Inputs) *patch.Result {
	if !guarded(in.mode()) || !in.operatorGuards() {
		return nil
	}
	return &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded, Message: "The etcd operator guards every node by itself" + in.Cluster.UnknownValues()}
}

// checkNoOperatorOwns stands back where an earlier operator writes the guard: it would write it again. On one node it neither
// writes nor removes it.
func checkNoOperatorOwns(in Inputs) *patch.Result {
	if !guarded(in.mode()) || in.ForceConflicts {
		return nil
	}
	stock := in.stockOwners()
	if len(stock) == 0 || in.Nodes == nil {
		return nil
	}
	want, _ := in.strengthOf()
	faults := in.faults(want)
	if len(faults) == 0 {
		return &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded, Message: "The guard that the etcd operator writes is right"}
	}
	return &patch.Result{State: patch.Blocked, Reason: ReasonFieldOwnedByOther, Message: fmt.Sprintf(
		"The guard is written by %s and %s; see whether that operator runs, restart or update it, or start with --force-conflicts", quoted(stock), listed(faults))}
}

// checkOverridesFree heeds what others say about the guard in spec.overrides, whatever the flags say: it decides over the
// upgrades of the whole cluster.
func checkOverridesFree(in Inputs) *patch.Result {
	if !in.mayBeStatic() {
		return nil
	}
	c, err := readClaim(in.ClusterVersion)
	switch {
	case err != nil:
		return invalid(err)
	case c.contrary:
		return OverridesOwnedByOther(c.contraries...)
	case c.atomic && !c.whole:
		return &patch.Result{State: patch.Blocked, Reason: ReasonFieldOwnedByOther, Message: FieldOverrides +
			" of this release is one value that belongs to somebody else; add entries for the Deployment and the PodDisruptionBudget of the guard with unmanaged: true there by hand"}
	}
	return nil
}

// OverridesOwnedByOther is the result where somebody else says in spec.overrides what is to become of the guard.
func OverridesOwnedByOther(managers ...string) *patch.Result {
	by := ""
	if len(managers) > 0 {
		by = " by " + quoted(managers)
	}
	return &patch.Result{State: patch.Blocked, Reason: ReasonFieldOwnedByOther, Message: "An entry for the guard in " + FieldOverrides +
		" is owned" + by + " and stays as it is, also with --force-conflicts; to have the guard follow the topology, remove the entry there"}
}

// checkClusterVersionThere waits while there is nothing in which to tell the cluster-version-operator to let go.
func checkClusterVersionThere(in Inputs) *patch.Result {
	if in.ClusterVersion != nil || !in.fromRelease() {
		return nil
	}
	return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject,
		Message: "The cluster-version-operator wrote the guard, but there is no ClusterVersion to tell it to let go; nothing is changed until there is"}
}

// checkNodesKnown waits for the nodes; without them the guard would have a size that only the topology expects.
func checkNodesKnown(in Inputs) *patch.Result {
	if in.Nodes != nil || !guarded(in.mode()) {
		return nil
	}
	return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForNodes, Message: "Waiting for the control-plane nodes to be read; nothing is changed until then"}
}

// checkAdoptable refuses a Deployment of that name that is no guard: its selector cannot be changed, and other containers would
// run on beside the guard.
func checkAdoptable(in Inputs) *patch.Result {
	if in.Deployment == nil || !guarded(in.mode()) {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(in.Deployment.Spec.Selector)
	if err == nil && selector.Matches(labels.Set(guardLabels())) && imageOf(in.Deployment) != "" {
		return nil
	}
	return &patch.Result{State: patch.Failed, Reason: ReasonInvalid, Message: fmt.Sprintf(
		"The Deployment is no guard: its selector must match %s, and a container must be called %q; delete it, and it is made again",
		labels.FormatLabels(guardLabels()), containerName)}
}

// checkFieldsFree leaves the guard alone where somebody else, neither the release nor an etcd operator, owns a number that is to
// be another. On one node the guard is to go, so any number of theirs is an obstacle.
func checkFieldsFree(in Inputs) *patch.Result {
	if in.ForceConflicts {
		return nil
	}
	differs := func(string) bool { return true }
	if guarded(in.mode()) {
		want, _ := in.strengthOf()
		differs = func(name string) bool {
			if name == FieldReplicas {
				return replicasOf(in.Deployment) != want.replicas
			}
			return floorOf(in.Budget, want.replicas) != want.floor
		}
	}
	for _, of := range in.fields() {
		owners, err := in.owners(func(name string) bool { return name == of.name && differs(name) })
		if err != nil {
			return invalid(err)
		}
		owners = slices.DeleteFunc(owners, func(m string) bool { return m == ClusterVersionOperator || m == Released || isStock(m) })
		if len(owners) > 0 {
			result := patch.OwnedByOther(of.name, owners...)
			return &result
		}
	}
	return nil
}

func invalid(err error) *patch.Result {
	return &patch.Result{State: patch.Failed, Reason: ReasonInvalid, Message: "The inputs cannot be understood: " + err.Error()}
}
