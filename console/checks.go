package console

import (
	"fmt"
	"slices"
	"strings"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	shapes "github.com/solonode/sno/patch/workload"
	"github.com/solonode/sno/topology"
)

// Checks are the preconditions for shaping the console Deployment, in order. The first that has something to say ends
// the decision over it.
func Checks() patch.Chain[Inputs] { return chain(Inputs.console, shapeChecks()) }

// DownloadsChecks are those for the downloads Deployment, which comes from a static manifest on releases that do not know
// topology.
func DownloadsChecks() patch.Chain[Inputs] {
	return chain(Inputs.downloads, append(shapeChecks(),
		patch.Check[workload]{Name: "ClusterVersionThere", Evaluate: checkClusterVersionThere},
		patch.Check[workload]{Name: "OverrideFree", Evaluate: checkOverrideFree},
	))
}

func shapeChecks() []patch.Check[workload] {
	return append(neededChecks(),
		patch.Check[workload]{Name: "NoConsoleOperator", Evaluate: checkNoConsoleOperator},
		patch.Check[workload]{Name: "FieldsFree", Evaluate: checkFieldsFree},
	)
}

// neededChecks are those after which the shape is needed, and only other people can keep it off the Deployment.
func neededChecks() patch.Chain[workload] {
	return patch.Chain[workload]{
		{Name: "Valid", Evaluate: checkValid},
		{Name: "Managed", Evaluate: checkManaged},
		{Name: "Exists", Evaluate: checkExists},
		{Name: "OptedOut", Evaluate: checkOptedOut},
		{Name: "TopologyKnown", Evaluate: checkTopologyKnown},
		{Name: "SingleReplica", Evaluate: checkSingleReplica},
	}
}

func chain(of func(Inputs) workload, checks []patch.Check[workload]) patch.Chain[Inputs] {
	var out patch.Chain[Inputs]
	for _, check := range checks {
		out = append(out, patch.Check[Inputs]{Name: check.Name, Evaluate: func(in Inputs) *patch.Result { return check.Evaluate(of(in)) }})
	}
	return out
}

func checkValid(w workload) *patch.Result {
	if err := w.Validate(); err != nil {
		return invalid(err)
	}
	return nil
}

// checkManaged heeds managementState, by which a person tells operators what to do with the console. Anything else than the
// two words, also nothing, means Managed.
func checkManaged(w workload) *patch.Result {
	if w.Operator == nil {
		return nil
	}
	switch w.Operator.Spec.ManagementState {
	case operatorv1.Removed:
		return &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded,
			Message: "The console is Removed by its managementState, so its Deployments are its operator's to delete"}
	case operatorv1.Unmanaged:
		return &patch.Result{State: patch.OptedOut, Reason: ReasonOptedOut,
			Message: "The managementState Unmanaged keeps operators away from the console; set it to Managed to have the Deployment follow the topology"}
	case operatorv1.Managed, operatorv1.Force:
	}
	return nil
}

func checkExists(w workload) *patch.Result {
	switch {
	case w.live == nil:
		return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject,
			Message: "There is no Deployment; its operator makes one, this module never does"}
	case w.live.DeletionTimestamp != nil:
		return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject,
			Message: "The Deployment is being deleted; its operator makes a new one"}
	}
	return nil
}

func checkOptedOut(w workload) *patch.Result {
	out := patch.OptsOut(w.live.Annotations, Name)
	if w.Operator != nil {
		out = out || patch.OptsOut(w.Operator.Annotations, Name)
	}
	if w.name == DownloadsName && w.ClusterVersion != nil {
		out = out || patch.OptsOut(w.ClusterVersion.Annotations, Name)
	}
	if !out {
		return nil
	}
	return &patch.Result{State: patch.OptedOut, Reason: ReasonOptedOut,
		Message: "The annotation " + patch.OptOutAnnotation + " keeps this module away; remove it to have the Deployment follow the topology"}
}

func checkTopologyKnown(w workload) *patch.Result {
	return patch.TopologyKnown(w.Cluster)
}

// checkSingleReplica leaves the Deployments alone where two replicas are right: that is what every manifest has, and an
// override that changes nothing would only keep the cluster from being upgraded.
func checkSingleReplica(w workload) *patch.Result {
	if topology.SingleReplica(modeOf(*w.Cluster)) {
		return nil
	}
	return &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded,
		Message: "The topology has room for two replicas, which is what the Deployment is made with" + w.Cluster.UnknownValues()}
}

// checkNoConsoleOperator stands back where a console operator writes the shape: it would write it again.
func checkNoConsoleOperator(w workload) *patch.Result {
	if w.ForceConflicts {
		return nil
	}
	stock, err := stockOwners(w.live)
	switch {
	case err != nil:
		return invalid(err)
	case len(stock) == 0:
		return nil
	case rollsOnOneNode(w.live):
		return &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded, Message: "The console operator runs one replica by itself"}
	}
	return &patch.Result{State: patch.Blocked, Reason: ReasonFieldOwnedByOther, Message: fmt.Sprintf(
		"The shape of the Deployment is written by %s, which knows the topology or is to be told; update that operator, or start with --force-conflicts",
		quoted(stock))}
}

// stockOwners lists the console operator's managers that own anything of the shape.
func stockOwners(live *appsv1.Deployment) ([]string, error) {
	var stock []string
	for _, field := range ShapeFields() {
		managers, err := ownership.Managers(live, field)
		if err != nil {
			return nil, err
		}
		for _, manager := range managers {
			if isStock(manager) && !slices.Contains(stock, manager) {
				stock = append(stock, manager)
			}
		}
	}
	slices.Sort(stock)
	return stock, nil
}

// rollsOnOneNode tells whether the Deployment behaves as it should with one node, in whatever way it says so: the stock
// operator writes 25% and 25%, which of one replica is the same as 0 and 1 (U-CON-1).
func rollsOnOneNode(live *appsv1.Deployment) bool {
	if live.Spec.Replicas == nil || *live.Spec.Replicas != 1 || keepsItselfApart(live) {
		return false
	}
	update := live.Spec.Strategy.RollingUpdate
	if live.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || update == nil {
		return false
	}
	surge, err := intstr.GetScaledValueFromIntOrPercent(update.MaxSurge, 1, true)
	if err != nil || surge < 1 {
		return false
	}
	unavailable, err := intstr.GetScaledValueFromIntOrPercent(update.MaxUnavailable, 1, false)
	return err == nil && unavailable == 0
}

// keepsItselfApart reports whether the pods of a Deployment must not share a node, so that a new one cannot start beside the old one.
func keepsItselfApart(live *appsv1.Deployment) bool {
	together := live.DeepCopy()
	shapes.Separate(together, shapes.Together)
	return len(shapes.AntiAffinityOf(together).RequiredDuringSchedulingIgnoredDuringExecution) < len(shapes.AntiAffinityOf(live).RequiredDuringSchedulingIgnoredDuringExecution)
}

// checkFieldsFree leaves a Deployment alone of whose shape somebody else owns a part with another value. The parts need each
// other (topology.RolloutStrategy), so one of them being taken leaves all of them. An equal value is no obstacle. What the
// cluster-version-operator owns of downloads is taken over later, when it has let go.
func checkFieldsFree(w workload) *patch.Result {
	if w.ForceConflicts {
		return nil
	}
	for _, field := range differences(w.live, *w.Cluster) {
		if !has(w.live, field) {
			continue
		}
		own := []string{FieldOwner}
		if w.name == DownloadsName {
			own = append(own, ClusterVersionOperator)
		}
		others, err := owners(w.live, field, own...)
		if err != nil {
			return invalid(err)
		}
		if len(others) > 0 {
			return ownedByOther(field, others)
		}
	}
	return nil
}

func checkClusterVersionThere(w workload) *patch.Result {
	if w.ClusterVersion != nil || !managedBy(w.live, ClusterVersionOperator) {
		return nil
	}
	return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject,
		Message: "The cluster-version-operator wrote the Deployment, but there is no ClusterVersion to tell it to let go; nothing is changed until there is"}
}

func checkOverrideFree(w workload) *patch.Result {
	if !w.needsOverride() {
		return nil
	}
	state, err := ReadOverride(w.ClusterVersion)
	switch {
	case err != nil:
		return invalid(err)
	case state.Present && state.Unmanaged:
		return nil
	case state.Atomic:
		return &patch.Result{State: patch.Blocked, Reason: ReasonFieldOwnedByOther, Message: FieldOverrides +
			" of this release is one value that belongs to somebody else; add an entry for the downloads Deployment with unmanaged: true there by hand"}
	case state.Present && (len(state.Others) > 0 || !state.Ours):
		result := OverrideOwnedByOther(state.Others...)
		return &result
	}
	return nil
}

// OverrideOwnedByOther is the result where somebody else says in spec.overrides what is to become of downloads. That is theirs,
// whatever the flags say: it decides over the upgrades of the whole cluster.
func OverrideOwnedByOther(managers ...string) patch.Result {
	by := ""
	if len(managers) > 0 {
		by = " by " + quoted(managers)
	}
	return patch.Result{State: patch.Blocked, Reason: ReasonFieldOwnedByOther, Message: "The entry for the downloads Deployment in " + FieldOverrides +
		" is owned" + by + " and stays as it is, also with --force-conflicts; to have downloads follow the topology, remove the entry there"}
}

// needsOverride tells whether the cluster-version-operator writes downloads, or may do so for all that is known. Only then is
// an entry in spec.overrides worth its price.
func (w workload) needsOverride() bool {
	return w.ClusterVersion != nil &&
		(managedBy(w.live, ClusterVersionOperator) || len(w.live.ManagedFields) == 0 || holdsOurs(w.ClusterVersion))
}

func managedBy(object metav1.Object, manager string) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.Subresource == ""
	})
}

// holdsOurs tells whether this module has anything on the object. Unreadable managedFields count as ours: what was put there
// by whoever knows better is not to be forgotten.
func holdsOurs(object metav1.Object) bool {
	own, err := ownership.Applied(object, FieldOwner, "")
	return err != nil || !own.Empty()
}

// patched is the shape of a Deployment that runs already: its old pods may be in the way of the first rollout.
func patched(live *appsv1.Deployment, cluster topology.Cluster) *appsv1.Deployment {
	want := shape(live, cluster)
	shapes.GiveWay(want, live)
	return want
}

// differences lists the ShapeFields, in that order, in which a Deployment is not as the topology asks for.
func differences(live *appsv1.Deployment, cluster topology.Cluster) []string {
	want := patched(live, cluster)
	var fields []string
	for _, field := range ShapeFields() {
		if !equality.Semantic.DeepEqual(valueOf(live, field), valueOf(want, field)) {
			fields = append(fields, field)
		}
	}
	return fields
}

func has(d *appsv1.Deployment, field string) bool { return valueOf(d, field) != nil }

// valueOf is the value of one of ShapeFields, nil if it is absent or empty.
func valueOf(d *appsv1.Deployment, field string) any {
	pod, update := d.Spec.Template.Spec, d.Spec.Strategy.RollingUpdate
	switch field {
	case FieldReplicas:
		if d.Spec.Replicas != nil {
			return *d.Spec.Replicas
		}
	case FieldStrategyType:
		if d.Spec.Strategy.Type != "" {
			return d.Spec.Strategy.Type
		}
	case FieldMaxUnavailable:
		if update != nil && update.MaxUnavailable != nil {
			return *update.MaxUnavailable
		}
	case FieldMaxSurge:
		if update != nil && update.MaxSurge != nil {
			return *update.MaxSurge
		}
	case FieldNodeSelector:
		if len(pod.NodeSelector) > 0 {
			return pod.NodeSelector
		}
	case FieldTolerations:
		if len(pod.Tolerations) > 0 {
			return pod.Tolerations
		}
	case FieldRequiredAntiAffinity:
		if terms := shapes.AntiAffinityOf(d).RequiredDuringSchedulingIgnoredDuringExecution; len(terms) > 0 {
			return terms
		}
	case FieldPreferredAntiAffinity:
		if terms := shapes.AntiAffinityOf(d).PreferredDuringSchedulingIgnoredDuringExecution; len(terms) > 0 {
			return terms
		}
	}
	return nil
}

// owners lists who, beside the given managers, owns a field that has a value. On an object without any managedFields the API
// server lets nobody overwrite what is there: it gives all of it to a manager of this name first.
func owners(live *appsv1.Deployment, field string, beside ...string) ([]string, error) {
	if len(live.ManagedFields) == 0 {
		return []string{"before-first-apply"}, nil
	}
	return ownership.Others(live, field, beside...)
}

func ownedByOther(field string, managers []string) *patch.Result {
	return &patch.Result{State: patch.Blocked, Reason: ReasonFieldOwnedByOther, Message: fmt.Sprintf(
		"%s is owned by %s and stays as it is; to have it follow the topology, remove the field there or start with --force-conflicts",
		field, quoted(managers))}
}

func invalid(err error) *patch.Result {
	return &patch.Result{State: patch.Failed, Reason: ReasonInvalid, Message: "The inputs cannot be understood: " + err.Error()}
}

func quoted(names []string) string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, fmt.Sprintf("%q", name))
	}
	return strings.Join(out, ", ")
}
