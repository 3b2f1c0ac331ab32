package controller_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// given is the manager of a number that was left behind, as docs/undo.md names it.
const given = "sno.solonode.github.io/ingress-released"

const (
	optOut = `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"ingress"}}}`
	optIn  = `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":null}}}`
)

// snapshot is everything about the default IngressController that a person or an operator put there: all but what every write changes, the
// conditions of this module, and the annotation by which a person opts out.
func (c *cluster) snapshot() map[string]any {
	c.Helper()
	u := defaultController()
	if err := c.admin.Get(c.Context(), client.ObjectKeyFromObject(u), u); err != nil {
		c.Fatal(err)
	}
	owners := map[string][]string{}
	for _, field := range []string{ingress.FieldReplicas, ".spec.domain", ".spec.nodePlacement.nodeSelector", ".spec.nodePlacement.tolerations"} {
		managers, err := ownership.Managers(u, field)
		if err != nil {
			c.Fatal(err)
		}
		owners[field] = managers
	}
	annotations := maps.Clone(u.GetAnnotations())
	delete(annotations, patch.OptOutAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	u.SetAnnotations(annotations)
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	u.SetGeneration(0)
	unstructured.RemoveNestedField(u.Object, "status")
	return map[string]any{"object": u.Object, "owners": owners}
}

// TestObjectIsAsItWasBefore shows R-SNO-6: the object is as it was before, with all fields and their owners, for
// objects created on a single node and created highly available, whether a person opts out or the topology ends the
// need and leaves nothing to correct.
func TestObjectIsAsItWasBefore(t *testing.T) {
	person := `{"metadata":{"labels":{"team":"edge"},"annotations":{"example.com/note":"keep"}},"spec":{"domain":"apps.example.com"}}`
	for name, test := range map[string]struct {
		spec  operatorv1.IngressControllerSpec
		edits map[string]string // by field manager
		// ends is the topology that ends the need without changing the number that fits.
		ends configv1.TopologyMode
	}{
		"created single":           {spec: operatorv1.IngressControllerSpec{Replicas: one}},
		"created highly available": {spec: operatorv1.IngressControllerSpec{Replicas: two}, ends: ha},
		"created without a number": {},
		"with what people wrote":   {spec: operatorv1.IngressControllerSpec{Replicas: one}, edits: map[string]string{"oc": person}},
		"a person scaled it":       {spec: operatorv1.IngressControllerSpec{Replicas: one}, edits: map[string]string{"oc": `{"spec":{"replicas":3}}`}, ends: ha},
		"a person scaled it to what fits": {spec: operatorv1.IngressControllerSpec{Replicas: two},
			edits: map[string]string{"oc": `{"spec":{"replicas":1}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			c := sharedCluster(t, sr, sr)
			c.createController("default", stock, test.spec)
			for manager, edit := range test.edits {
				c.edit(manager, edit)
			}
			before := c.snapshot()
			was := c.controller().Spec.Replicas
			pinnedTo := one
			if was != nil && *was == 3 {
				pinnedTo = was
			}
			p := c.start()
			c.eventually("it is pinned", c.pinned(pinnedTo))
			c.edit("oc", optOut)
			c.eventually("it is let go", c.released(was))
			if diff := cmp.Diff(before, c.snapshot()); diff != "" {
				t.Errorf("opted out (-before +after):\n%s", diff)
			}
			c.atRest(p, 2)
			if test.ends == "" {
				return
			}
			c.edit("oc", optIn)
			c.eventually("it is pinned again", c.pinned(pinnedTo))
			c.flip(test.ends, test.ends)
			c.eventually("it is let go", c.released(was))
			if diff := cmp.Diff(before, c.snapshot()); diff != "" {
				t.Errorf("not needed (-before +after):\n%s", diff)
			}
		})
	}
}

// A number that no longer fits is corrected and stays: an autoscaler can read it after every change of the topology, and after opting out.
func TestNumberLeftBehindFits(t *testing.T) {
	for name, test := range map[string]struct {
		created *int32
		// flips are the topologies after the first, which is SingleReplica; each has the number that must then be there.
		flips []configv1.TopologyMode
		want  *int32 // after opting out at the end
		owner string
	}{
		"single, highly available":                             {one, []configv1.TopologyMode{ha}, two, given},
		"single, highly available, single":                     {one, []configv1.TopologyMode{ha, sr}, one, given},
		"single, highly available, single, highly available":   {one, []configv1.TopologyMode{ha, sr, ha}, two, given},
		"created highly available, single, highly available":   {two, []configv1.TopologyMode{ha}, two, stock},
		"created highly available, single, and there and back": {two, []configv1.TopologyMode{ha, sr}, two, stock},
		"single, there and back twice":                         {one, []configv1.TopologyMode{ha, sr, ha, sr}, one, given},
	} {
		t.Run(name, func(t *testing.T) {
			c := sharedCluster(t, sr, sr)
			c.installController(*test.created)
			before := c.snapshot()
			p := c.start()
			c.eventually("it is pinned", c.pinned(one))
			for _, at := range test.flips {
				c.flip(at, at)
				if at == sr {
					c.eventually("it is pinned", c.pinned(one))
					c.eventually("an autoscaler reads the number", c.scale(one))
					continue
				}
				c.eventually("it is let go", c.released(two))
			}
			c.edit("oc", optOut)
			c.eventually("it is let go", c.released(test.want))
			c.eventually("it says so", c.shows("False", "OptedOut"))
			c.atRest(p, 2)
			managers, err := ownership.Managers(c.controller(), ingress.FieldReplicas)
			if diff := cmp.Diff([]string{test.owner}, managers); err != nil || diff != "" {
				t.Errorf("owners of the replicas: %v (-want +got):\n%s", err, diff)
			}
			// But for the number and its owner, the object is as it was.
			after := c.snapshot()
			if err := unstructured.SetNestedField(before["object"].(map[string]any), int64(*test.want), "spec", "replicas"); err != nil {
				t.Fatal(err)
			}
			before["owners"].(map[string][]string)[ingress.FieldReplicas] = managers
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
			if slices.Contains(managers, ingress.FieldOwner) {
				t.Error("opting out would remove the number")
			}
			// The next topology is followed again from there.
			c.edit("oc", optIn)
			c.flip(sr, sr)
			c.eventually("it is pinned", c.pinned(ptr.To[int32](1)))
		})
	}
}
