// SPDX-License-Identifier: Apache-2.0

package overrides_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/patch/ownership"
)

const owner, person = "sno.solonode.github.io/sample", "oc"

// Owned fields of the entry for a Deployment, and of the list as one value.
const (
	at        = `{"f:spec":{"f:overrides":{"k:{\"group\":\"apps\",\"kind\":\"Deployment\",\"name\":\"a\",\"namespace\":\"n\"}":`
	all       = at + `{".":{},"f:group":{},"f:kind":{},"f:name":{},"f:namespace":{},"f:unmanaged":{}}}}}`
	value     = at + `{"f:unmanaged":{}}}}}`
	keys      = at + `{".":{},"f:group":{},"f:kind":{},"f:name":{},"f:namespace":{}}}}}`
	wholeList = `{"f:spec":{"f:overrides":{}}}`
)

func entry(name string, unmanaged bool) configv1.ComponentOverride {
	e := overrides.Deployment("n", name)
	e.Unmanaged = unmanaged
	return e
}

// others returns entries that differ from the module's in one key.
func others() []configv1.ComponentOverride {
	near := []configv1.ComponentOverride{entry("a", true), entry("a", true), entry("a", true), entry("b", true)}
	near[0].Kind, near[1].Group, near[2].Namespace = "DaemonSet", "", "m"
	return near
}

// version returns a ClusterVersion that the cluster-version-operator has observed.
func version(list ...configv1.ComponentOverride) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version", Generation: 3}}
	cv.Spec.Overrides = list
	cv.Status.ObservedGeneration = 3
	return ownedBy(cv, "cluster-bootstrap", `{"f:spec":{"f:clusterID":{}}}`)
}

func ownedBy(cv *configv1.ClusterVersion, manager, fields string) *configv1.ClusterVersion {
	e := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: &metav1.FieldsV1{}}
	if manager == owner {
		e.Operation = metav1.ManagedFieldsOperationApply
	}
	if err := json.Unmarshal([]byte(fields), e.FieldsV1); err != nil {
		panic(err)
	}
	cv.ManagedFields = append(cv.ManagedFields, e)
	return cv
}

func unobserved(cv *configv1.ClusterVersion) *configv1.ClusterVersion {
	cv.Generation++
	return cv
}

func TestRead(t *testing.T) {
	both := []string{"maker", person}
	for name, test := range map[string]struct {
		version *configv1.ClusterVersion
		want    overrides.Claim
		err     error
	}{
		"no ClusterVersion": {nil, overrides.Claim{}, nil},
		"no entries":        {version(), overrides.Claim{Observed: true}, nil},
		"others' entries":   {ownedBy(version(others()...), person, keys), overrides.Claim{Observed: true}, nil},
		"own": {ownedBy(version(entry("a", true)), owner, all),
			overrides.Claim{Complete: true, Observed: true, Applied: true, Releasable: true}, nil},
		"own, not yet observed": {unobserved(ownedBy(version(entry("a", true)), owner, all)),
			overrides.Claim{Complete: true, Applied: true, Releasable: true}, nil},
		"another client's": {ownedBy(version(entry("a", true)), person, all),
			overrides.Claim{Complete: true, Observed: true, Shared: true, Others: []string{person}}, nil},
		"of several": {ownedBy(ownedBy(version(entry("a", true)), person, all), "maker", all),
			overrides.Claim{Complete: true, Observed: true, Shared: true, Others: both}, nil},
		"another client's, contrary": {ownedBy(version(entry("a", false)), person, all),
			overrides.Claim{Observed: true, Shared: true, Conflicting: true, Others: []string{person}}, nil},
		"without an owner": {version(entry("a", true)), overrides.Claim{Complete: true, Observed: true, Shared: true}, nil},
		"both": {ownedBy(ownedBy(version(entry("a", true)), person, all), owner, all),
			overrides.Claim{Complete: true, Observed: true, Applied: true, Releasable: true, Shared: true, Others: []string{person}}, nil},
		"own, then conflicting": {ownedBy(ownedBy(version(entry("a", false)), person, value), owner, keys),
			overrides.Claim{Observed: true, Applied: true, Shared: true, Conflicting: true, Others: []string{person}}, nil},
		"own, whose value is another client's": {ownedBy(ownedBy(version(entry("a", true)), person, value), owner, keys),
			overrides.Claim{Complete: true, Observed: true, Applied: true, Shared: true, Others: []string{person}}, nil},
		"own, whose value is another client's as well": {ownedBy(ownedBy(version(entry("a", true)), person, value), owner, all),
			overrides.Claim{Complete: true, Observed: true, Applied: true, Shared: true, Others: []string{person}}, nil},
		"one value, without own": {ownedBy(version(entry("b", true)), person, wholeList), overrides.Claim{Observed: true, Atomic: true}, nil},
		"one value, with own": {ownedBy(version(entry("a", true)), person, wholeList),
			overrides.Claim{Complete: true, Observed: true, Atomic: true, Shared: true, Others: []string{person}}, nil},
		"one value, empty": {ownedBy(version(), person, wholeList), overrides.Claim{Observed: true}, nil},
		"a list whose creator owns no entry": {ownedBy(ownedBy(version(entry("a", true)), "maker", wholeList), owner, all),
			overrides.Claim{Complete: true, Observed: true, Applied: true, Releasable: true}, nil},
		"unreadable": {ownedBy(version(), person, `{"f:spec":7}`), overrides.Claim{}, ownership.ErrManagedFields},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := overrides.Read(test.version, owner, entry("a", true))
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(overrides.Claim{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if want := got.Complete && got.Observed; got.InForce() != want {
				t.Errorf("in force %t, want %t", got.InForce(), want)
			}
		})
	}
}

// All of several entries must exist, and one that cannot be released blocks the release.
func TestReadSeveral(t *testing.T) {
	one := ownedBy(version(entry("a", true)), owner, all)
	claim, err := overrides.Read(one, owner, entry("a", true), entry("b", true))
	if err != nil || claim.Complete || !claim.Releasable || claim.Shared {
		t.Errorf("%+v, %v", claim, err)
	}
	if got := names(claim); got != "[a b]" {
		t.Errorf("to be applied: %s", got)
	}
	taken := ownedBy(ownedBy(version(entry("b", true), entry("a", true)), owner, all), person, value)
	if claim, err = overrides.Read(taken, owner, entry("a", true), entry("b", true)); err != nil || !claim.Complete || claim.Releasable {
		t.Errorf("%+v, %v", claim, err)
	}
	if got := names(claim); got != "[a]" {
		t.Errorf("to be applied, with one of another client: %s", got)
	}
}

func names(c overrides.Claim) string {
	var out []string
	for _, e := range c.Intent().Spec.Overrides {
		out = append(out, *e.Name)
	}
	return fmt.Sprint(out)
}

func TestBlocked(t *testing.T) {
	for name, test := range map[string]struct {
		claim overrides.Claim
		want  string
	}{
		"free":     {overrides.Claim{}, ""},
		"in force": {overrides.Claim{Complete: true, Shared: true, Atomic: true}, ""},
		"conflicting": {overrides.Claim{Conflicting: true, Others: []string{"b", "a"}},
			`The entry for it in .spec.overrides is owned by "a", "b" and stays as it is`},
		"conflicting, without an owner": {overrides.Claim{Conflicting: true}, "The entry for it in .spec.overrides is owned and stays as it is"},
		"one value": {overrides.Claim{Atomic: true},
			".spec.overrides of this release is one value that another client owns; add an entry for it"},
	} {
		got := test.claim.Blocked("it")
		if (got == nil) != (test.want == "") || (got != nil && (got.State != patch.Blocked || len(got.Message) < len(test.want) || got.Message[:len(test.want)] != test.want)) {
			t.Errorf("%s: %v, want %q", name, got, test.want)
		}
	}
}

func ExampleRead() {
	downloads := overrides.Deployment("openshift-console", "downloads")
	claim, err := overrides.Read(&configv1.ClusterVersion{}, "example.com/console", downloads)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(claim.InForce(), claim.Blocked("the downloads Deployment") == nil)
	spec, _ := json.Marshal(claim.Intent().Spec)
	fmt.Println(string(spec))
	// Output:
	// false true
	// {"overrides":[{"kind":"Deployment","group":"apps","namespace":"openshift-console","name":"downloads","unmanaged":true}]}
}
