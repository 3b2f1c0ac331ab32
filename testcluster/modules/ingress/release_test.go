// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/ingress/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// left is the manager of a number that a release set, as in docs/undo.md.
const left = "sno.solonode.github.io/ingress-released"

// snapshot returns the default IngressController and the owners of its fields, without the status, the opt-out, and the
// metadata that each write changes.
func (c *cluster) snapshot() map[string]any {
	c.Helper()
	u := controllerObject.Unstructured()
	c.NoError(c.Admin.Get(c.Context(), controllerObject.Key(), u))
	owners := map[string][]string{}
	for _, field := range []string{decision.FieldReplicas, ".spec.domain", ".spec.nodePlacement.nodeSelector", ".spec.nodePlacement.tolerations"} {
		managers, err := ownership.Managers(u, field)
		c.NoError(err)
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

// R-SNO-6: a release restores all fields and their owners, after an opt-out and after a change of the topology.
func TestReleaseRestoresTheObject(t *testing.T) {
	person := `{"metadata":{"labels":{"team":"edge"},"annotations":{"example.com/note":"keep"}},"spec":{"domain":"apps.example.com"}}`
	for name, test := range map[string]struct {
		replicas *int32
		edit     string // a person's
		pinned   *int32
		ends     configv1.TopologyMode // not SingleReplica, and the number stays right
	}{
		"created single":                  {replicas: one, pinned: one},
		"created highly available":        {replicas: two, pinned: one, ends: ha},
		"created without a number":        {pinned: one},
		"with what people wrote":          {replicas: one, edit: person, pinned: one},
		"a person scaled it":              {replicas: one, edit: `{"spec":{"replicas":3}}`, pinned: three, ends: ha},
		"a person scaled it to what fits": {replicas: two, edit: `{"spec":{"replicas":1}}`, pinned: one},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, sr, sr)
			c.create("default", test.replicas)
			if test.edit != "" {
				c.Patch("oc", controllerObject, test.edit)
			}
			before, was := c.snapshot(), c.controller().Spec.Replicas
			l := c.reconciler()
			l.Settle()
			c.NoError(c.pinned(test.pinned)())
			same := func(when string) {
				t.Helper()
				l.Settle()
				c.NoError(c.released(was)())
				if diff := cmp.Diff(before, c.snapshot()); diff != "" {
					t.Errorf("%s (-before +after):\n%s", when, diff)
				}
				l.CheckNoWrites()
			}
			c.Patch("oc", controllerObject, optOut)
			same("opted out")
			if test.ends == "" {
				return
			}
			c.Patch("oc", controllerObject, optIn)
			l.Settle()
			c.NoError(c.pinned(test.pinned)())
			c.SetTopology(test.ends, test.ends)
			same("not needed")
		})
	}
}

// A release corrects a stale number of routers, which an autoscaler can read after changes of the topology and an
// opt-out.
func TestReleaseCorrectsReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		created *int32
		flips   []configv1.TopologyMode // after SingleReplica
		want    *int32                  // after opting out at the end
		owner   string
	}{
		"single, highly available":                           {one, []configv1.TopologyMode{ha}, two, left},
		"single, highly available, single":                   {one, []configv1.TopologyMode{ha, sr}, one, left},
		"single, highly available, single, highly available": {one, []configv1.TopologyMode{ha, sr, ha}, two, left},
		"created highly available, single, highly available": {two, []configv1.TopologyMode{ha}, two, stock},
		"created highly available, single, both again":       {two, []configv1.TopologyMode{ha, sr}, two, stock},
		"single, highly available, single, both again":       {one, []configv1.TopologyMode{ha, sr, ha, sr}, one, left},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, sr, sr)
			c.create("default", test.created)
			before := c.snapshot()
			l := c.reconciler()
			for _, at := range append([]configv1.TopologyMode{sr}, test.flips...) {
				c.SetTopology(at, at)
				l.Settle()
				if at == sr {
					c.NoError(errors.Join(c.pinned(one)(), c.scale(one)()))
				} else {
					c.NoError(c.released(two)())
				}
			}
			c.Patch("oc", controllerObject, optOut)
			l.CheckResult(l.Settle(), patch.OptedOut, "OptedOut")
			c.NoError(c.released(test.want)())
			l.CheckNoWrites()
			// Only the number and its owner have changed.
			c.NoError(unstructured.SetNestedField(before["object"].(map[string]any), int64(*test.want), "spec", "replicas"))
			before["owners"].(map[string][]string)[decision.FieldReplicas] = []string{test.owner}
			if diff := cmp.Diff(before, c.snapshot()); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
			c.Patch("oc", controllerObject, optIn)
			c.SetTopology(sr, sr)
			l.Settle()
			c.NoError(c.pinned(one)())
		})
	}
}
