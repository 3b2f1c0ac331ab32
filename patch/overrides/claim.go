// SPDX-License-Identifier: Apache-2.0

// Package overrides reads and builds entries in spec.overrides of the ClusterVersion, which make objects unmanaged.
// Since OpenShift 4.6 an entry blocks all upgrades, patch releases included; a cluster-version-operator of 2026 or
// later permits patch releases again.
//
// openshift/api has the list as a map by kind, group, namespace and name, earlier releases as one value.
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

// The name of the ClusterVersion, the field manager of its operator, and the field of the entries.
const (
	ClusterVersionName     = "version"
	ClusterVersionOperator = "cluster-version-operator"
	Field                  = ".spec.overrides"
)

// Deployment returns the entry that makes a Deployment unmanaged.
func Deployment(namespace, name string) configv1.ComponentOverride {
	return configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: namespace, Name: name, Unmanaged: true}
}

// Claim is the state of a module's entries in a ClusterVersion. The zero Claim means that there is no ClusterVersion.
type Claim struct {
	Complete    bool     // all entries exist with unmanaged: true
	Observed    bool     // the cluster-version-operator has observed the spec
	Applied     bool     // the module has applied fields of the ClusterVersion
	Releasable  bool     // those can be released: no other client owns a value without its keys
	Shared      bool     // an entry has another owner or none
	Conflicting bool     // one of those has unmanaged: false
	Others      []string // the other owners of the entries, sorted
	Atomic      bool     // in this release the list is one value, which others own

	wanted []configv1.ComponentOverride
}

// InForce reports whether the cluster-version-operator no longer manages the objects.
func (c Claim) InForce() bool { return c.Complete && c.Observed }

// Read returns the Claim of the entries in the ClusterVersion, which may be nil, for a field owner.
func Read(version *configv1.ClusterVersion, owner string, entries ...configv1.ComponentOverride) (Claim, error) {
	if version == nil {
		return Claim{}, nil
	}
	applied := ownership.Owns(version, owner)
	c := Claim{Complete: true, Observed: version.Status.ObservedGeneration >= version.Generation, Applied: applied, Releasable: applied}
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

// removable reports whether the owner owns the value of the entry, and all other owners its keys, as a release
// requires.
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

// Intent returns the entries to apply: those that are missing and those that the module owns.
func (c Claim) Intent() *configv1ac.ClusterVersionApplyConfiguration {
	spec := configv1ac.ClusterVersionSpec()
	for _, entry := range c.wanted {
		spec.WithOverrides(configv1ac.ComponentOverride().WithKind(entry.Kind).WithGroup(entry.Group).
			WithNamespace(entry.Namespace).WithName(entry.Name).WithUnmanaged(entry.Unmanaged))
	}
	return configv1ac.ClusterVersion(ClusterVersionName).WithSpec(spec)
}

// Blocked returns the result for entries that other owners block, or nil. subject is such as "the downloads
// Deployment".
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

// OwnedByOther returns the result for an entry of another client, which is not taken by force: it affects upgrades.
func OwnedByOther(subject string, managers ...string) *patch.Result {
	by := ""
	if len(managers) > 0 {
		by = " by " + patch.Quoted(managers)
	}
	return &patch.Result{State: patch.Blocked, Reason: patch.ReasonFieldOwnedByOther, Message: fmt.Sprintf(
		"The entry for %s in %s is owned%s and stays as it is, also with --force-conflicts; to have %[1]s follow the topology, remove the entry there",
		subject, Field, by)}
}
