// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"encoding/json"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/ownership"
)

// Forgery is what a user writes into annotations of an object of which he may patch the status only: that the module is
// to release the object, and values that it is to restore.
type Forgery struct {
	Object controller.Object
	Values map[string]string // JSON by field; none of the object's own
	// Ignored means that the API server stores no metadata of requests to the status, as for custom resources (U-SSA-13).
	Ignored bool
}

// CheckForgeries fails the test if a module whose patch is in force gives a forger what he wants: a release, or, when
// the topology later calls for one, his values.
func (r *Reconciler) CheckForgeries(release func(), forgeries ...Forgery) {
	r.Helper()
	live := func(f Forgery) *unstructured.Unstructured {
		u := f.Object.Unstructured()
		r.NoError(r.Admin.Get(r.Context(), f.Object.Key(), u))
		return u
	}
	before := make([]any, len(forgeries))
	for i, f := range forgeries {
		before[i] = live(f).Object["spec"]
		r.forge(f)
		if _, kept := live(f).GetAnnotations()[patch.OptOutAnnotation]; kept == f.Ignored {
			r.Errorf("the API server stores annotations of requests to the status of %s: %t, want %t", f.Object.Kind, kept, !f.Ignored)
		}
	}
	r.Settle() // takes back the annotation of a custom resource
	r.CheckNoWrites()
	for i, f := range forgeries {
		if diff := cmp.Diff(before[i], live(f).Object["spec"]); diff != "" {
			r.Errorf("%s %s after a forged opt-out (-want +got):\n%s", f.Object.Kind, f.Object.Key(), diff)
		}
	}
	release()
	for _, f := range forgeries {
		u := live(f)
		if ownership.Owns(u, patch.FieldOwner(r.Module.Name())) {
			r.Errorf("%s %s is not released", f.Object.Kind, f.Object.Key())
		}
		for field, value := range f.Values {
			path, err := ownership.ParsePath(field)
			r.NoError(err)
			var names []string
			for _, element := range path {
				names = append(names, *element.FieldName)
			}
			got, found, err := unstructured.NestedFieldNoCopy(u.Object, names...)
			r.NoError(err)
			if encoded, err := json.Marshal(got); err != nil || found && string(encoded) == value {
				r.Errorf("%s of %s %s has the forged value %s, %v", field, f.Object.Kind, f.Object.Key(), encoded, err)
			}
		}
	}
}

func (r *Reconciler) forge(f Forgery) {
	r.Helper()
	mapping, err := r.Admin.RESTMapper().RESTMapping(f.Object.GroupVersionKind.GroupKind(), f.Object.Version)
	r.NoError(err)
	const forger = "status-writer"
	r.Server.Grant(r, forger, rbacv1.PolicyRule{
		APIGroups: []string{f.Object.Group}, Resources: []string{mapping.Resource.Resource + "/status"}, Verbs: []string{"patch"},
	})
	var values []patch.Replaced
	for field, value := range f.Values {
		values = append(values, patch.Replaced{Field: field, Manager: "kubectl", Value: json.RawMessage(value)})
	}
	text, err := patch.WriteReplaced(values)
	r.NoError(err)
	name := r.Module.Name()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		patch.OptOutAnnotation: "all", patch.ReplacedAnnotation(name): text,
	}}})
	r.NoError(err)
	theirs := r.Server.Client(r, forger)
	write := merge("%s", []any{body})
	if err := theirs.Patch(r.Context(), f.Object.Unstructured(), write); !apierrors.IsForbidden(err) {
		r.Fatalf("a user who may patch only the status patches %s: %v", f.Object.Kind, err)
	}
	// He may call himself what he wants.
	r.NoError(theirs.Status().Patch(r.Context(), f.Object.Unstructured(), write, client.FieldOwner(patch.FieldOwner(name))))
}
