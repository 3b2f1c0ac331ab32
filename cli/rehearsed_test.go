package cli_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/cli/plan"
	consolecontroller "github.com/solonode/sno/console/controller"
	ingresscontroller "github.com/solonode/sno/ingress/controller"
	"github.com/solonode/sno/patch/manager"
)

// What a rehearsal makes of an object is what the API server makes of it, owners included: applied, forced, and given back.
func TestRehearsalIsTrue(t *testing.T) {
	c := newCluster(t)
	us := c.server.Client(t, user, "system:masters")
	for _, step := range []struct {
		name    string
		module  manager.Module
		options plan.Options
		args    []string
	}{
		{"apply ingress", &ingresscontroller.Module{}, plan.Options{}, []string{"apply", "--modules", "ingress"}},
		{"apply console", &consolecontroller.Module{}, plan.Options{ForceConflicts: true}, []string{"apply", "--modules", "console", "--force-conflicts"}},
		{"release console", &consolecontroller.Module{}, plan.Options{Releasing: true}, []string{"release", "console"}},
		{"release ingress", &ingresscontroller.Module{}, plan.Options{Releasing: true}, []string{"release", "ingress"}},
	} {
		planned, err := plan.Of(t.Context(), us, step.module, step.options)
		if err != nil {
			t.Fatal(err)
		}
		asked := step.options
		asked.Server = us
		withServer, err := plan.Of(t.Context(), us, step.module, asked)
		if err != nil {
			t.Fatal(err)
		}
		c.ends(0, step.args...)
		if len(planned.Writes) == 0 || len(planned.Writes) != len(withServer.Writes) {
			t.Fatalf("%s: %d writes, %d with the server's answers", step.name, len(planned.Writes), len(withServer.Writes))
		}
		for i, w := range planned.Writes {
			is := &unstructured.Unstructured{}
			is.SetGroupVersionKind(w.GroupVersionKind)
			if err := us.Get(t.Context(), w.ObjectKey, is); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(normal(is), normal(w.After)); diff != "" {
				t.Errorf("%s: %s (-API server +rehearsal):\n%s", step.name, plan.NameOf(w.After), diff)
			}
			if diff := cmp.Diff(normal(is), normal(withServer.Writes[i].After)); diff != "" {
				t.Errorf("%s: %s (-API server +rehearsal with its answers):\n%s", step.name, plan.NameOf(w.After), diff)
			}
		}
	}
}

// normal is the object without versions and times, and with the owners of its fields.
func normal(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	owners := map[string]any{}
	for _, entry := range u.GetManagedFields() {
		owners[entry.Manager+" "+string(entry.Operation)+" "+entry.Subresource] = entry.FieldsV1.GetRawString()
	}
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	u.Object["owners"] = owners
	return u.Object
}
