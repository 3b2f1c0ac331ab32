package approver

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	configv1ac "github.com/openshift/client-go/config/applyconfigurations/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch/ownership"
)

// Override is the entry of ClusterVersion's spec.overrides that keeps the cluster-version-operator away from the stock approver, for
// Off. While any such entry is set, the cluster-version-operator reports Upgradeable=False and lets no minor upgrade start.
func Override() configv1.ComponentOverride {
	return configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: Namespace, Name: DeploymentName, Unmanaged: true}
}

// claim is what a ClusterVersion says about the stock approver. The zero value is that of a cluster without one.
type claim struct {
	// unmanaged tells whether the entry is there and says so, whoever wrote it.
	unmanaged bool
	// observed tells whether the cluster-version-operator works with this spec: status.observedGeneration is that of the object.
	observed bool
	// ours tells whether this module applied anything to the ClusterVersion. All it ever applies is the entry.
	ours bool
	// contrary tells that somebody else says unmanaged: false, and contraries who, where it is known.
	contrary   bool
	contraries []string
	// atomic tells that this release's API has the list as one value, which others own.
	atomic bool
}

func readClaim(version *configv1.ClusterVersion) (claim, error) {
	if version == nil {
		return claim{}, nil
	}
	c := claim{observed: version.Status.ObservedGeneration >= version.Generation, ours: holdsOurs(version)}
	if len(version.Spec.Overrides) == 0 {
		return c, nil
	}
	atomic, err := ownership.Atomic(version, fieldpath.MakePathOrDie("spec", "overrides"))
	if err != nil {
		return claim{}, err
	}
	want := Override()
	at := slices.IndexFunc(version.Spec.Overrides, func(have configv1.ComponentOverride) bool {
		have.Unmanaged = want.Unmanaged
		return have == want
	})
	if at < 0 {
		c.atomic = atomic
		return c, nil
	}
	c.unmanaged = version.Spec.Overrides[at].Unmanaged
	managers, err := ownership.ManagersAt(version, fieldpath.MakePathOrDie("spec", "overrides", fieldpath.KeyByFields(
		"group", want.Group, "kind", want.Kind, "name", want.Name, "namespace", want.Namespace)))
	if err != nil {
		return claim{}, err
	}
	c.contraries = slices.DeleteFunc(slices.Clone(managers), func(m string) bool { return m == FieldOwner })
	c.contrary = !c.unmanaged && (len(c.contraries) > 0 || !slices.Contains(managers, FieldOwner))
	return c, nil
}

// overrideIntent holds our entry only; everybody else's stay.
func overrideIntent() *configv1ac.ClusterVersionApplyConfiguration {
	ours := Override()
	return configv1ac.ClusterVersion(ClusterVersionName).WithSpec(configv1ac.ClusterVersionSpec().WithOverrides(
		configv1ac.ComponentOverride().WithKind(ours.Kind).WithGroup(ours.Group).
			WithNamespace(ours.Namespace).WithName(ours.Name).WithUnmanaged(ours.Unmanaged)))
}

// holdsOurs tells whether this module has anything on the object. Unreadable managedFields count as ours: what was put there
// by whoever knows better is not to be forgotten.
func holdsOurs(object metav1.Object) bool {
	own, err := ownership.Applied(object, FieldOwner, "")
	return err != nil || !own.Empty()
}

// managedBy tells whether the manager owns anything of the object itself.
func managedBy(object metav1.Object, manager string) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.Subresource == ""
	})
}
