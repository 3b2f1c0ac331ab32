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

const us, person = "sno.solonode.github.io/sample", "oc"

// What managers may have of the entry for a Deployment, and the list as one value.
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

// others are entries that differ from ours in one key.
func others() []configv1.ComponentOverride {
	near := []configv1.ComponentOverride{entry("a", true), entry("a", true), entry("a", true), entry("b", true)}
	near[0].Kind, near[1].Group, near[2].Namespace = "DaemonSet", "", "m"
	return near
}

// version is a ClusterVersion that the cluster-version-operator has seen.
func version(list ...configv1.ComponentOverride) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version", Generation: 3}}
	cv.Spec.Overrides = list
	cv.Status.ObservedGeneration = 3
	return signed(cv, "cluster-bootstrap", `{"f:spec":{"f:clusterID":{}}}`)
}

func signed(cv *configv1.ClusterVersion, manager, fields string) *configv1.ClusterVersion {
	e := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: &metav1.FieldsV1{}}
	if manager == us {
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
		"others' entries":   {signed(version(others()...), person, keys), overrides.Claim{Observed: true}, nil},
		"ours": {signed(version(entry("a", true)), us, all),
			overrides.Claim{Complete: true, Observed: true, Applied: true, Releasable: true}, nil},
		"ours, not yet seen": {unobserved(signed(version(entry("a", true)), us, all)),
			overrides.Claim{Complete: true, Applied: true, Releasable: true}, nil},
		"another client's": {signed(version(entry("a", true)), person, all),
			overrides.Claim{Complete: true, Observed: true, Shared: true, Others: []string{person}}, nil},
		"of several": {signed(signed(version(entry("a", true)), person, all), "maker", all),
			overrides.Claim{Complete: true, Observed: true, Shared: true, Others: both}, nil},
		"another client's, contrary": {signed(version(entry("a", false)), person, all),
			overrides.Claim{Observed: true, Shared: true, Conflicting: true, Others: []string{person}}, nil},
		"without an owner": {version(entry("a", true)), overrides.Claim{Complete: true, Observed: true, Shared: true}, nil},
		"both": {signed(signed(version(entry("a", true)), person, all), us, all),
			overrides.Claim{Complete: true, Observed: true, Applied: true, Releasable: true, Shared: true, Others: []string{person}}, nil},
		"ours, then contradicted": {signed(signed(version(entry("a", false)), person, value), us, keys),
			overrides.Claim{Observed: true, Applied: true, Shared: true, Conflicting: true, Others: []string{person}}, nil},
		"ours, whose value is another client's": {signed(signed(version(entry("a", true)), person, value), us, keys),
			overrides.Claim{Complete: true, Observed: true, Applied: true, Shared: true, Others: []string{person}}, nil},
		"ours, whose value is another client's as well": {signed(signed(version(entry("a", true)), person, value), us, all),
			overrides.Claim{Complete: true, Observed: true, Applied: true, Shared: true, Others: []string{person}}, nil},
		"one value, without ours": {signed(version(entry("b", true)), person, wholeList), overrides.Claim{Observed: true, Atomic: true}, nil},
		"one value, with ours": {signed(version(entry("a", true)), person, wholeList),
			overrides.Claim{Complete: true, Observed: true, Atomic: true, Shared: true, Others: []string{person}}, nil},
		"one value, empty": {signed(version(), person, wholeList), overrides.Claim{Observed: true}, nil},
		"a list whose maker lost all": {signed(signed(version(entry("a", true)), "maker", wholeList), us, all),
			overrides.Claim{Complete: true, Observed: true, Applied: true, Releasable: true}, nil},
		"unreadable": {signed(version(), person, `{"f:spec":7}`), overrides.Claim{}, ownership.ErrManagedFields},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := overrides.Read(test.version, us, entry("a", true))
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

// Of several entries all must be there, and one that cannot be released blocks the release of the others.
func TestReadSeveral(t *testing.T) {
	one := signed(version(entry("a", true)), us, all)
	claim, err := overrides.Read(one, us, entry("a", true), entry("b", true))
	if err != nil || claim.Complete || !claim.Releasable || claim.Shared {
		t.Errorf("%+v, %v", claim, err)
	}
	if got := names(claim); got != "[a b]" {
		t.Errorf("to be applied: %s", got)
	}
	taken := signed(signed(version(entry("b", true), entry("a", true)), us, all), person, value)
	if claim, err = overrides.Read(taken, us, entry("a", true), entry("b", true)); err != nil || !claim.Complete || claim.Releasable {
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
		"contrary": {overrides.Claim{Conflicting: true, Others: []string{"b", "a"}},
			`The entry for it in .spec.overrides is owned by "a", "b" and stays as it is`},
		"contrary, without an owner": {overrides.Claim{Conflicting: true}, "The entry for it in .spec.overrides is owned and stays as it is"},
		"one value": {overrides.Claim{Atomic: true},
			".spec.overrides of this release is one value that another client owns; add an entry for it"},
	} {
		got := test.claim.Blocked("it")
		if (got == nil) != (test.want == "") || (got != nil && (got.State != patch.Blocked || len(got.Message) < len(test.want) || got.Message[:len(test.want)] != test.want)) {
			t.Errorf("%s: %v, want %q", name, got, test.want)
		}
	}
}

// The cluster-version-operator must not manage a Deployment: the entry is applied, entries of others stay.
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
