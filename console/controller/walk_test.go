package controller

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/patch/workload"
)

// walker takes the controller's looks one by one, without a cache and without a process.
type walker struct {
	*cluster
	patcher  *patcher
	operator *versionOperator
}

// walker has the permissions of the controller's role and nothing else. change may replace its client.
func (c *cluster) walker(change ...func(client.Client) client.Client) *walker {
	c.Helper()
	var writer client.Client = c.server.Client(c.T, us)
	reader := writer
	for _, f := range change {
		writer = f(writer)
	}
	return &walker{cluster: c, operator: &versionOperator{cluster: c}, patcher: newPatcher(reader, reader, func(overridable ...apply.Overridable) *apply.Applier {
		return &apply.Applier{Client: writer, Module: console.Name, Overridable: overridable, ForceConflicts: c.force}
	})}
}

// step is one look.
func (w *walker) step() patch.Result {
	w.Helper()
	_, result, err := w.patcher.look(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return result
}

// settle looks, with the cluster-version-operator acting after every look, until nobody changes anything.
func (w *walker) settle() patch.Result {
	w.Helper()
	before := w.versions()
	for range 20 {
		result := w.step()
		w.operator.act()
		after := w.versions()
		if after == before {
			return result
		}
		before = after
	}
	w.Fatal("it does not come to rest")
	return patch.Result{}
}

func (w *walker) versions() string {
	w.Helper()
	text := ""
	for _, name := range []string{console.ConsoleName, console.DownloadsName} {
		text += w.deployment(name).ResourceVersion + " "
	}
	return text + w.clusterVersion().ResourceVersion
}

// shaped says whether a Deployment has the shape of one node.
func (c *cluster) shaped(name string) error {
	d := c.deployment(name)
	cluster, err := topologyOf(sr, sr)
	if err != nil {
		return err
	}
	want, err := console.ShapeDeployment(d, cluster)
	if err != nil {
		return err
	}
	want.Spec.Strategy.RollingUpdate.MaxUnavailable = d.Spec.Strategy.RollingUpdate.MaxUnavailable
	if diff := cmp.Diff(want.Spec, d.Spec); diff != "" {
		return fmt.Errorf("%s is not shaped (-want +got):\n%s", name, diff)
	}
	// While the old pods with their anti-affinity are there, one may go before the new one is there.
	if n := d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue(); n > 1 || (n == 1 && workload.RolledOut(d)) {
		return fmt.Errorf("%s: a rollout is an outage: %+v", name, d.Spec.Strategy)
	}
	if *d.Spec.Replicas != 1 || d.Spec.Strategy.RollingUpdate.MaxSurge.IntValue() != 1 {
		return fmt.Errorf("%s: %+v", name, d.Spec)
	}
	if _, pinned := d.Spec.Template.Spec.NodeSelector["node-role.kubernetes.io/master"]; !pinned || len(d.Spec.Template.Spec.Tolerations) < 2 {
		return fmt.Errorf("%s: %+v", name, d.Spec.Template.Spec)
	}
	if a := d.Spec.Template.Spec.Affinity; a != nil {
		return fmt.Errorf("%s: %+v", name, a)
	}
	return nil
}

func (c *cluster) requireShaped(names ...string) {
	c.Helper()
	for _, name := range names {
		if err := c.shaped(name); err != nil {
			c.Error(err)
		}
	}
}

// overrides says whether spec.overrides has exactly these entries, in this order.
func (c *cluster) overrides(want ...configv1.ComponentOverride) error {
	if diff := cmp.Diff(want, c.clusterVersion().Spec.Overrides); diff != "" {
		return fmt.Errorf("overrides (-want +got):\n%s", diff)
	}
	return nil
}

// owned is what each manager owns of an object, as text; times do not count.
func owned(t testing.TB, o client.Object) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, e := range o.GetManagedFields() {
		fields, err := e.FieldsV1.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		out[fmt.Sprintf("%s %s %s", e.Manager, e.Operation, e.Subresource)] = string(fields)
	}
	return out
}

// requireNothingOfOurs fails when anything of ours is left on an object.
func (c *cluster) requireNothingOfOurs(objects ...client.Object) {
	c.Helper()
	for _, o := range objects {
		own, err := ownership.Applied(o, console.FieldOwner, "")
		if err != nil {
			c.Fatal(err)
		}
		if !own.Empty() {
			c.Errorf("%s: still ours: %s", o.GetName(), own)
		}
		if text, ok := o.GetAnnotations()[patch.ReplacedAnnotation(console.Name)]; ok {
			c.Errorf("%s: still remembered: %s", o.GetName(), text)
		}
	}
}
