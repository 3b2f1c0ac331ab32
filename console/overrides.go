package console

import (
	"errors"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	configv1ac "github.com/openshift/client-go/config/applyconfigurations/config/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch/ownership"
)

// ErrOverrideContradicts is returned when spec.overrides says that the cluster-version-operator shall manage downloads.
var ErrOverrideContradicts = errors.New("spec.overrides has an entry for the downloads Deployment with unmanaged: false")

// Override is the entry of ClusterVersion's spec.overrides that keeps the cluster-version-operator away from downloads. While
// any such entry is set, the cluster-version-operator reports Upgradeable=False and lets no minor upgrade start, patch upgrades
// neither before its pull request 1314; so the entry stands only as long as it is needed.
func Override() configv1.ComponentOverride {
	return configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: Namespace, Name: DownloadsName, Unmanaged: true}
}

func isOverride(entry configv1.ComponentOverride) bool {
	ours := Override()
	ours.Unmanaged = entry.Unmanaged
	return entry == ours
}

// AddOverride is the list with Override in it, for a client that reads and writes the whole list; such a write must carry the
// resourceVersion of what was read. Everybody else's entries stay as and where they are. The list is not changed; one that
// has the entry already comes back equal. ErrOverrideContradicts where somebody wrote the entry with unmanaged: false.
//
// Server-side apply needs none of this: the list is a map by kind, group, namespace and name in openshift/api, so an apply
// configuration holds one entry.
func AddOverride(list []configv1.ComponentOverride) ([]configv1.ComponentOverride, error) {
	at := slices.IndexFunc(list, isOverride)
	switch {
	case at < 0:
		return append(slices.Clone(list), Override()), nil
	case !list[at].Unmanaged:
		return nil, ErrOverrideContradicts
	}
	return slices.Clone(list), nil
}

// RemoveOverride is the list without Override. An entry with unmanaged: false was never ours and stays. A list cannot tell
// whose an entry is: ask ReadOverride first.
func RemoveOverride(list []configv1.ComponentOverride) []configv1.ComponentOverride {
	return slices.DeleteFunc(slices.Clone(list), func(entry configv1.ComponentOverride) bool { return entry == Override() })
}

// OverrideState is what a ClusterVersion says about the downloads Deployment.
type OverrideState struct {
	// Present tells whether spec.overrides has an entry for it, and Unmanaged what the entry says.
	Present, Unmanaged bool
	// Observed tells whether the cluster-version-operator works with this spec: status.observedGeneration is that of the
	// object. Until then it may still be writing by an older one.
	Observed bool
	// Ours tells whether this module applied the entry, alone or together with others who hold all of it too, so that it can be
	// given back. Who changed only what an entry of ours says has made it theirs: the API server would refuse to take its keys
	// from around their value. Those keys stay with the entry, under our name, until it is removed.
	Ours bool
	// Others are the managers beside this module that own the entry, sorted.
	Others []string
	// Atomic tells that this release's API has the list as one value (before the markers in openshift/api), so that setting an
	// entry replaces the entries of others.
	Atomic bool
}

// InForce tells whether the cluster-version-operator is known to keep away from downloads.
func (s OverrideState) InForce() bool { return s.Present && s.Unmanaged && s.Observed }

// ReadOverride reads the entry and whose it is. Without a ClusterVersion it is the zero OverrideState. Unreadable
// managedFields are an ownership.ErrManagedFields.
func ReadOverride(version *configv1.ClusterVersion) (OverrideState, error) {
	if version == nil {
		return OverrideState{}, nil
	}
	state := OverrideState{Observed: version.Status.ObservedGeneration >= version.Generation}
	if at := slices.IndexFunc(version.Spec.Overrides, isOverride); at >= 0 {
		state.Present, state.Unmanaged = true, version.Spec.Overrides[at].Unmanaged
	}
	list := fieldpath.MakePathOrDie("spec", "overrides")
	atomic, err := ownership.Atomic(version, list)
	if err != nil {
		return OverrideState{}, err
	}
	state.Atomic = atomic && len(version.Spec.Overrides) > 0
	if !state.Present {
		return state, nil
	}
	managers := func(of ...any) []string {
		path := append(list.Copy(), fieldpath.MakePathOrDie(of...)...)
		owners, ownersErr := ownership.ManagersAt(version, path)
		err = errors.Join(err, ownersErr)
		return owners
	}
	ours := Override()
	entry := fieldpath.KeyByFields("group", ours.Group, "kind", ours.Kind, "name", ours.Name, "namespace", ours.Namespace)
	state.Others = slices.DeleteFunc(managers(entry), func(m string) bool { return m == FieldOwner })
	if len(state.Others) == 0 {
		state.Others = nil
	}
	whole := managers(entry, "name")
	state.Ours = slices.Contains(managers(entry, "unmanaged"), FieldOwner) &&
		!slices.ContainsFunc(state.Others, func(m string) bool { return !slices.Contains(whole, m) })
	if err != nil {
		return OverrideState{}, err
	}
	return state, nil
}

// overrideIntent holds our entry only. A list without entries cannot be applied to, so letting go is a release.
func overrideIntent() *configv1ac.ClusterVersionApplyConfiguration {
	ours := Override()
	return configv1ac.ClusterVersion(ClusterVersionName).WithSpec(configv1ac.ClusterVersionSpec().WithOverrides(
		configv1ac.ComponentOverride().WithKind(ours.Kind).WithGroup(ours.Group).
			WithNamespace(ours.Namespace).WithName(ours.Name).WithUnmanaged(ours.Unmanaged)))
}
