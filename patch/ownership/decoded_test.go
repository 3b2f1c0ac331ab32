package ownership

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func owning(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
}

// TestChangedInMemory asks about one object, changes it without the API server (so that its version is the same), and asks again.
func TestChangedInMemory(t *testing.T) {
	object := &metav1.ObjectMeta{UID: "a", ResourceVersion: "1"}
	for _, test := range []struct {
		name    string
		entries []metav1.ManagedFieldsEntry
		want    []string
	}{
		{"one", []metav1.ManagedFieldsEntry{owning("one", `{"f:spec":{"f:replicas":{}}}`)}, []string{"one"}},
		{"another name", []metav1.ManagedFieldsEntry{owning("two", `{"f:spec":{"f:replicas":{}}}`)}, []string{"two"}},
		{"another field", []metav1.ManagedFieldsEntry{owning("two", `{"f:spec":{"f:paused":{}}}`)}, nil},
		{"two", []metav1.ManagedFieldsEntry{owning("two", `{"f:spec":{"f:replicas":{}}}`), owning("one", `{"f:spec":{"f:replicas":{}}}`)}, []string{"one", "two"}},
		{"no fields", []metav1.ManagedFieldsEntry{{Manager: "one"}}, nil},
		{"names that run together", []metav1.ManagedFieldsEntry{owning("on", `{}`), owning("e", `{"f:spec":{"f:replicas":{}}}`)}, []string{"e"}},
		{"none", nil, nil},
		{"one again", []metav1.ManagedFieldsEntry{owning("one", `{"f:spec":{"f:replicas":{}}}`)}, []string{"one"}},
	} {
		object.ManagedFields = test.entries
		for range 2 {
			if got, err := Managers(object, ".spec.replicas"); err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%s: %q, %v; want %q", test.name, got, err, test.want)
			}
		}
	}
}

// TestAppliedIsOwn changes what it is given.
func TestAppliedIsOwn(t *testing.T) {
	object := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{owning("one", `{"f:spec":{"f:replicas":{}}}`)}}
	for range 2 {
		set, err := Applied(object, "one", "")
		if err != nil {
			t.Fatal(err)
		}
		if want := fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "replicas")); !set.Equals(want) {
			t.Errorf("got %s, want %s", set, want)
		}
		set.Insert(fieldpath.MakePathOrDie("spec", "paused"))
	}
	if got, err := Managers(object, ".spec.paused"); err != nil || len(got) > 0 {
		t.Errorf("%q, %v; want none", got, err)
	}
}

func TestUnreadableStaysUnreadable(t *testing.T) {
	object := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{owning("one", `{"f:spec":`)}}
	for range 2 {
		if _, err := Managers(object, ".spec.replicas"); !errors.Is(err, ErrManagedFields) {
			t.Errorf("%v, want ErrManagedFields", err)
		}
		if _, err := Applied(object, "one", ""); !errors.Is(err, ErrManagedFields) {
			t.Errorf("%v, want ErrManagedFields", err)
		}
	}
}

// TestAskedByMany asks about more objects than are kept, from several goroutines.
func TestAskedByMany(t *testing.T) {
	const objects, askers = 100, 4
	var asking sync.WaitGroup
	for range askers {
		asking.Go(func() {
			for i := range objects {
				manager := fmt.Sprint("manager", i)
				object := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{owning(manager, fmt.Sprintf(`{"f:spec":{"f:field%d":{}}}`, i))}}
				if got, err := Managers(object, fmt.Sprint(".spec.field", i)); err != nil || !slices.Equal(got, []string{manager}) {
					t.Errorf("%q, %v; want %s", got, err, manager)
				}
			}
		})
	}
	asking.Wait()
}
