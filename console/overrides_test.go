package console_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch/ownership"
)

// others are a hundred entries of other people, some of which look like ours but for one field.
func others() []configv1.ComponentOverride {
	near := []configv1.ComponentOverride{theEntry(true), theEntry(true), theEntry(true), theEntry(true)}
	near[0].Kind, near[1].Group, near[2].Namespace, near[3].Name = "DaemonSet", "", "openshift-downloads", "console"
	for i := len(near); i < 100; i++ {
		near = append(near, configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: "n", Name: fmt.Sprint("d", i), Unmanaged: i%2 == 0})
	}
	return near
}

func TestOverrideLists(t *testing.T) {
	ours, contrary := theEntry(true), theEntry(false)
	for name, test := range map[string]struct {
		list, added, removed []configv1.ComponentOverride
		err                  error
	}{
		"none":                  {nil, []configv1.ComponentOverride{ours}, nil, nil},
		"a hundred of others":   {others(), append(others(), ours), others(), nil},
		"already there, first":  {append([]configv1.ComponentOverride{ours}, others()...), append([]configv1.ComponentOverride{ours}, others()...), others(), nil},
		"already there, middle": {slices.Insert(others(), 50, ours), slices.Insert(others(), 50, ours), others(), nil},
		"contradicted":          {append(others(), contrary), nil, append(others(), contrary), console.ErrOverrideContradicts},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(test.list)
			added, err := console.AddOverride(test.list)
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if diff := cmp.Diff(test.added, added); diff != "" {
				t.Errorf("added (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.removed, console.RemoveOverride(test.list)); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, test.list); diff != "" {
				t.Errorf("the argument was changed:\n%s", diff)
			}
		})
	}
	// Spare capacity of the caller's slice is the caller's.
	list := make([]configv1.ComponentOverride, 1, 2)
	if _, err := console.AddOverride(list); err != nil || list[:2][1] != (configv1.ComponentOverride{}) {
		t.Errorf("wrote behind the argument: %v, %v", list[:2], err)
	}
}

func TestReadOverride(t *testing.T) {
	for name, test := range map[string]struct {
		version *configv1.ClusterVersion
		want    console.OverrideState
		err     error
	}{
		"no ClusterVersion":           {nil, console.OverrideState{}, nil},
		"no overrides":                {version(), console.OverrideState{Observed: true}, nil},
		"others' overrides":           {version(others()...), console.OverrideState{Observed: true}, nil},
		"ours":                        {signed(version(theEntry(true)), us, overrideJSON), console.OverrideState{Present: true, Unmanaged: true, Observed: true, Ours: true}, nil},
		"ours, not yet seen":          {unobserved(signed(version(theEntry(true)), us, overrideJSON)), console.OverrideState{Present: true, Unmanaged: true, Ours: true}, nil},
		"ours, no longer there":       {signed(version(), us, overrideJSON), console.OverrideState{Observed: true}, nil},
		"somebody else's":             {signed(version(theEntry(true)), person, overrideJSON), console.OverrideState{Present: true, Unmanaged: true, Observed: true, Others: []string{"oc"}}, nil},
		"both":                        {signed(signed(version(theEntry(true)), person, overrideJSON), us, overrideJSON), console.OverrideState{Present: true, Unmanaged: true, Observed: true, Ours: true, Others: []string{"oc"}}, nil},
		"ours, contradicted":          {signed(signed(version(theEntry(false)), person, unmanagedJSON), us, keysJSON), console.OverrideState{Present: true, Observed: true, Others: []string{"oc"}}, nil},
		"ours, said by somebody else": {signed(signed(version(theEntry(true)), person, unmanagedJSON), us, keysJSON), console.OverrideState{Present: true, Unmanaged: true, Observed: true, Others: []string{"oc"}}, nil},
		"ours, said by both":          {signed(signed(version(theEntry(true)), person, unmanagedJSON), us, overrideJSON), console.OverrideState{Present: true, Unmanaged: true, Observed: true, Others: []string{"oc"}}, nil},
		"nobody's":                    {version(theEntry(true)), console.OverrideState{Present: true, Unmanaged: true, Observed: true}, nil},
		"one value, without ours":     {signed(version(otherEntry()), person, wholeListJSON), console.OverrideState{Observed: true, Atomic: true}, nil},
		"one value, with ours":        {signed(version(otherEntry(), theEntry(true)), person, wholeListJSON), console.OverrideState{Present: true, Unmanaged: true, Observed: true, Others: []string{"oc"}, Atomic: true}, nil},
		"one value, empty":            {signed(version(), person, wholeListJSON), console.OverrideState{Observed: true}, nil},
		"a list whose maker lost all": {signed(signed(version(theEntry(true)), "maker", wholeListJSON), us, overrideJSON), console.OverrideState{Present: true, Unmanaged: true, Observed: true, Ours: true}, nil},
		"two entries of one manager":  {signed(signed(version(theEntry(true)), person, `{"f:status":{"f:x":{}}}`), person, overrideJSON), console.OverrideState{Present: true, Unmanaged: true, Observed: true, Others: []string{"oc"}}, nil},
		"managedFields without fields": {func() *configv1.ClusterVersion {
			v := version(theEntry(true))
			v.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
			return v
		}(), console.OverrideState{Present: true, Unmanaged: true, Observed: true}, nil},
		"unreadable": {signed(version(), person, `{"f:spec":7}`), console.OverrideState{}, ownership.ErrManagedFields},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := console.ReadOverride(test.version)
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if want := got.Present && got.Unmanaged && got.Observed; got.InForce() != want {
				t.Errorf("in force %t, want %t", got.InForce(), want)
			}
		})
	}
}
