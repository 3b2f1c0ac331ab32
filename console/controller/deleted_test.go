package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch"
)

func (c *cluster) remove(o client.Object) {
	c.Helper()
	if err := c.admin.Delete(c.Context(), o); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) removeDownloads() {
	c.Helper()
	c.remove(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: console.Namespace, Name: console.DownloadsName}})
}

// Somebody deletes downloads in the middle of the takeover. Only the release makes it anew, so the override goes until it has,
// and then the takeover starts over.
func TestDownloadsDeletedInTheMiddle(t *testing.T) {
	for name, test := range map[string]struct {
		// before is what happens until it is deleted, after is what happens right after.
		before, after func(*walker)
	}{
		"before the override":                    {func(*walker) {}, func(*walker) {}},
		"before the override is observed":        {func(w *walker) { w.step() }, func(*walker) {}},
		"observed only after the deletion":       {func(w *walker) { w.step() }, func(w *walker) { w.operator.act() }},
		"when the override is observed":          {func(w *walker) { w.step(); w.operator.act() }, func(*walker) {}},
		"when it is shaped":                      {func(w *walker) { w.step(); w.operator.act(); w.step() }, func(*walker) {}},
		"at rest":                                {func(w *walker) { w.settle() }, func(*walker) {}},
		"while its override is being given back": {func(w *walker) { w.settle(); w.flip(ha, ha); w.step(); w.flip(sr, sr) }, func(*walker) {}},
	} {
		t.Run(name, func(t *testing.T) {
			c := installed(t, sr, sr, hundred()[:2]...)
			w := c.walker()
			test.before(w)
			c.removeDownloads()
			test.after(w)
			result := w.step()
			if result.State != patch.Waiting && result.State != patch.Progressing {
				t.Errorf("right after: %v", result)
			}
			for range 3 { // until the release has made it again
				w.operator.act()
				w.step()
			}
			w.settle()
			c.requireShaped(console.DownloadsName)
			if err := c.overrides(append(hundred()[:2], console.Override())...); err != nil {
				t.Error(err)
			}
		})
	}
}

// While nobody makes downloads, there is no override either, and nothing is written.
func TestDownloadsMissing(t *testing.T) {
	c := installed(t, sr, sr)
	w := c.walker()
	w.settle()
	c.removeDownloads()
	if result := w.step(); result.Reason != patch.ReasonWaitingForObject {
		t.Error(result)
	}
	if err := c.overrides(); err != nil {
		t.Error(err)
	}
	c.server.NoWrites(t, us, func() { w.step(); w.step() })
}

// Somebody deletes the ClusterVersion: nothing changes until there is one again, and then all is as it was.
func TestClusterVersionDeleted(t *testing.T) {
	c := installed(t, sr, sr)
	w := c.walker()
	w.settle()
	before := c.deployment(console.DownloadsName)
	c.remove(c.clusterVersion())
	var result patch.Result
	c.server.NoWrites(t, us, func() { w.step(); result = w.step() })
	if result.Reason != patch.ReasonWaitingForObject {
		t.Error(result)
	}
	if diff := cmp.Diff(before.Spec, c.deployment(console.DownloadsName).Spec); diff != "" {
		t.Errorf("downloads changed:\n%s", diff)
	}
	c.installVersion()
	w.settle()
	c.requireShaped(console.DownloadsName)
	if err := c.overrides(console.Override()); err != nil {
		t.Error(err)
	}
}
