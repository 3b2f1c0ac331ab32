// Package overrides reads and builds a module's entries in spec.overrides of the ClusterVersion, with which the cluster-version-operator
// does not manage objects of the release. While any entry is set it starts no minor upgrade.
//
// The list is a map by kind, group, namespace and name in openshift/api; in earlier releases it is one value, which cannot be shared.
package overrides

import (
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	configv1ac "github.com/openshift/client-go/config/applyconfigurations/config/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// The ClusterVersion, the field manager of its operator, and the field that holds the entries.
const (
	ClusterVersionName     = "version"
	ClusterVersionOperator = "cluster-version-operator"
	Field                  = ".spec.overrides"
)

// Deployment returns the entry with which the cluster-version-operator does not manage a Deployment.
func Deployment(namespace, name string) configv1.ComponentOverride {
	return configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: namespace, Name: name, Unmanaged: true}
}

// Claim is the state of some entries in a ClusterVersion; the zero Claim is that of a cluster without one.
type Claim struct {
	// Complete reports whether every entry exists with unmanaged: true.
	Complete bool
	// Observed reports whether the cluster-version-operator has seen this spec.
	Observed bool
	// Applied reports whether the module has applied anything to the ClusterVersion; Releasable, whether that can be released. The API server
	// refuses to remove the keys of an entry from a value that another client changed.
	Applied, Releasable bool
	// Shared reports whether another client, or nobody, owns one of the entries; Conflicting, whether one of those has unmanaged: false.
	Shared, Conflicting bool
	// Others are the other managers that own any of the entries, sorted.
	Others []string
	// Atomic reports whether this release's API has the list as one value, which others own.
	Atomic bool

	// wanted are the entries that are missing or the module's own.
	wanted []configv1.ComponentOverride
}

// InForce reports whether the cluster-version-operator is known not to manage the objects.
func (c Claim) InForce() bool { return c.Complete && c.Observed }

// Read returns the Claim of the entries in the ClusterVersion, which may be nil, for the module with that field owner.
func Read(version *configv1.ClusterVersion, owner string, entries ...configv1.ComponentOverride) (Claim, error) {
	if version == nil {
		return Claim{}, nil
	}
	held := ownership.Owns(version, owner)
	c := Claim{Complete: true, Observed: version.Status.ObservedGeneration >= version.Generation, Applied: held, Releasable: held}
	list := fieldpath.MakePathOrDie("spec", "overrides")
	atomic, err := ownership.Atomic(version, list)
	if err != nil {
		return Claim{}, err
	}
	c.Atomic = atomic && len(version.Spec.Overrides) > 0
	for _, want := range entries {
		at := slices.IndexFunc(version.Spec.Overrides, func(have configv1.ComponentOverride) bool {
			have.Unmanaged = want.Unmanaged
			return have == want
		})
		if at < 0 {
			c.Complete = false
			c.wanted = append(c.wanted, want)
			continue
		}
		entry := append(list.Copy(), fieldpath.MakePathOrDie(fieldpath.KeyByFields(
			"group", want.Group, "kind", want.Kind, "name", want.Name, "namespace", want.Namespace))...)
		managers, err := ownership.ManagersAt(version, entry)
		if err != nil {
			return Claim{}, err
		}
		others := slices.DeleteFunc(slices.Clone(managers), func(m string) bool { return m == owner })
		shared := len(managers) == 0 || len(others) > 0
		if slices.Contains(managers, owner) {
			c.wanted = append(c.wanted, want)
			removable, err := removable(version, entry, owner, others)
			if err != nil {
				return Claim{}, err
			}
			c.Releasable = c.Releasable && removable
		}
		if !version.Spec.Overrides[at].Unmanaged {
			c.Complete = false
			c.Conflicting = c.Conflicting || shared
		}
		c.Shared = c.Shared || shared
		c.Others = append(c.Others, others...)
	}
	slices.Sort(c.Others)
	c.Others = slices.Compact(c.Others)
	return c, nil
}

// removable reports whether the owner owns the value of the entry, and all other owners its keys as well.
func removable(version *configv1.ClusterVersion, entry fieldpath.Path, owner string, others []string) (bool, error) {
	at := func(field string) ([]string, error) {
		return ownership.ManagersAt(version, append(entry.Copy(), fieldpath.MakePathOrDie(field)...))
	}
	value, err := at("unmanaged")
	if err != nil {
		return false, err
	}
	keys, err := at("name")
	return slices.Contains(value, owner) && !slices.ContainsFunc(others, func(m string) bool { return !slices.Contains(keys, m) }), err
}

// Intent returns the entries to apply, those that are missing or the module's own, after which the Claim is Complete.
func (c Claim) Intent() *configv1ac.ClusterVersionApplyConfiguration {
	spec := configv1ac.ClusterVersionSpec()
	for _, entry := range c.wanted {
		spec.WithOverrides(configv1ac.ComponentOverride().WithKind(entry.Kind).WithGroup(entry.Group).
			WithNamespace(entry.Namespace).WithName(entry.Name).WithUnmanaged(entry.Unmanaged))
	}
	return configv1ac.ClusterVersion(ClusterVersionName).WithSpec(spec)
}

// Blocked returns the result for entries that cannot be set because of other owners, or nil. subject names their objects, such as "the
// downloads Deployment".
func (c Claim) Blocked(subject string) *patch.Result {
	switch {
	case c.Conflicting:
		return OwnedByOther(subject, c.Others...)
	case c.Atomic && !c.Complete:
		return &patch.Result{State: patch.Blocked, Reason: patch.ReasonFieldOwnedByOther, Message: fmt.Sprintf(
			"%s of this release is one value that another client owns; add an entry for %s with unmanaged: true there by hand", Field, subject)}
	}
	return nil
}

// OwnedByOther returns the result for an entry that another client owns. It is not taken by force either, since it decides on upgrades of
// the whole cluster.
func OwnedByOther(subject string, managers ...string) *patch.Result {
	by := ""
	if len(managers) > 0 {
		by = " by " + patch.Quoted(managers)
	}
	return &patch.Result{State: patch.Blocked, Reason: patch.ReasonFieldOwnedByOther, Message: fmt.Sprintf(
		"The entry for %s in %s is owned%s and stays as it is, also with --force-conflicts; to have %[1]s follow the topology, remove the entry there",
		subject, Field, by)}
}
