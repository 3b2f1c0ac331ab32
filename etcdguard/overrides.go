package etcdguard

import (
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	configv1ac "github.com/openshift/client-go/config/applyconfigurations/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch/ownership"
)

// Overrides are the entries of ClusterVersion's spec.overrides that keep the cluster-version-operator away from the guard and
// from its budget: both have a static manifest. While any such entry is set, the cluster-version-operator reports
// Upgradeable=False and lets no minor upgrade start; so the entries stand only as long as they are needed.
func Overrides() []configv1.ComponentOverride {
	return []configv1.ComponentOverride{
		{Kind: "Deployment", Group: "apps", Namespace: Namespace, Name: GuardName, Unmanaged: true},
		{Kind: "PodDisruptionBudget", Group: "policy", Namespace: Namespace, Name: GuardName, Unmanaged: true},
	}
}

// claim is what a ClusterVersion says about the guard. The zero value is that of a cluster without one.
type claim struct {
	// whole tells whether spec.overrides has all Overrides, whoever wrote them.
	whole bool
	// observed tells whether the cluster-version-operator works with this spec: status.observedGeneration is that of the object.
	observed bool
	// ours tells whether this module applied anything to the ClusterVersion. All it ever applies is overrides.
	ours bool
	// wanted are the Overrides that are missing or ours: those that an apply of ours holds.
	wanted []configv1.ComponentOverride
	// theirs tells that somebody else has an entry for the guard, in whatever sense.
	theirs bool
	// contrary tells that somebody else says unmanaged: false, and contraries who, where it is known.
	contrary   bool
	contraries []string
	// atomic tells that this release's API has the list as one value, which others own.
	atomic bool
}

// inForce tells whether the cluster-version-operator is known to keep away.
func (c claim) inForce() bool { return c.whole && c.observed }

func readClaim(version *configv1.ClusterVersion) (claim, error) {
	if version == nil {
		return claim{}, nil
	}
	c := claim{whole: true, observed: version.Status.ObservedGeneration >= version.Generation, ours: holdsOurs(version)}
	if len(version.Spec.Overrides) > 0 {
		atomic, err := ownership.Atomic(version, fieldpath.MakePathOrDie("spec", "overrides"))
		if err != nil {
			return claim{}, err
		}
		c.atomic = atomic
	}
	for _, want := range Overrides() {
		at := slices.IndexFunc(version.Spec.Overrides, func(have configv1.ComponentOverride) bool {
			have.Unmanaged = want.Unmanaged
			return have == want
		})
		if at < 0 {
			c.whole = false
			c.wanted = append(c.wanted, want)
			continue
		}
		managers, err := ownership.ManagersAt(version, fieldpath.MakePathOrDie("spec", "overrides", fieldpath.KeyByFields(
			"group", want.Group, "kind", want.Kind, "name", want.Name, "namespace", want.Namespace)))
		if err != nil {
			return claim{}, err
		}
		mine := slices.Contains(managers, FieldOwner)
		others := slices.DeleteFunc(managers, func(m string) bool { return m == FieldOwner })
		if mine {
			c.wanted = append(c.wanted, want)
		}
		theirs := !mine || len(others) > 0
		c.theirs = c.theirs || theirs
		if !version.Spec.Overrides[at].Unmanaged {
			c.whole = false
			if theirs {
				c.contrary, c.contraries = true, append(c.contraries, others...)
			}
		}
	}
	return c, nil
}

// intent holds our entries only; everybody else's stay.
func (c claim) intent() *configv1ac.ClusterVersionApplyConfiguration {
	spec := configv1ac.ClusterVersionSpec()
	for _, entry := range c.wanted {
		spec.WithOverrides(configv1ac.ComponentOverride().WithKind(entry.Kind).WithGroup(entry.Group).
			WithNamespace(entry.Namespace).WithName(entry.Name).WithUnmanaged(entry.Unmanaged))
	}
	return configv1ac.ClusterVersion(ClusterVersionName).WithSpec(spec)
}

// holdsOurs tells whether this module has anything on the object. Unreadable managedFields count as ours: what was put there
// by whoever knows better is not to be forgotten.
func holdsOurs(object metav1.Object) bool {
	own, err := ownership.Applied(object, FieldOwner, "")
	return err != nil || !own.Empty()
}

func managedBy(object metav1.Object, manager string) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == manager })
}

func quoted(names []string) string {
	out := make([]string, 0, len(names))
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		out = append(out, fmt.Sprintf("%q", name))
	}
	return strings.Join(out, ", ")
}

// listed is "a, b and c".
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
