package controller

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch/manager"
)

// lagging is a cache that is behind in one object: it still has an old copy.
type lagging struct {
	client.Reader
	old *unstructured.Unstructured
}

func (l lagging) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if o.GetObjectKind().GroupVersionKind() == l.old.GroupVersionKind() && key == client.ObjectKeyFromObject(l.old) {
		l.old.DeepCopyInto(o.(*unstructured.Unstructured))
		return nil
	}
	return l.Reader.Get(ctx, key, o, opts...)
}

func (c *cluster) copyOf(o manager.Object) *unstructured.Unstructured {
	c.Helper()
	return get(c, o.Unstructured(), o.Key())
}

// A cache that is behind must not have downloads shaped without the override, nor the override given back before the shape.
func TestReliesOnlyOnWhatStillIs(t *testing.T) {
	c := installed(t, sr, sr)
	w := c.walker()
	w.step()
	w.operator.act()
	inPlace := c.copyOf(versionObject)
	unshaped := c.copyOf(downloadsObject)

	// Meanwhile the override was given back, and the release has downloads.
	c.flip(ha, ha)
	w.settle()
	c.flip(sr, sr)
	behind := c.walker()
	behind.patcher.reader = lagging{behind.patcher.reader, inPlace}
	before := c.deployment(console.DownloadsName)
	if result := behind.step(); result.Reason != console.ReasonRollingOut || result.After == 0 {
		t.Errorf("with an override of the past: %v, again in %s", result, result.After)
	}
	if diff := cmp.Diff(before.Spec, c.deployment(console.DownloadsName).Spec); diff != "" {
		t.Errorf("downloads is shaped without an override:\n%s", diff)
	}

	// Meanwhile downloads was shaped.
	w.settle()
	c.flip(ha, ha)
	behind = c.walker()
	behind.patcher.reader = lagging{behind.patcher.reader, unshaped}
	behind.step()
	if err := c.overrides(console.Override()); err != nil {
		t.Errorf("the override is given back before the shape: %v", err)
	}
	w.settle()
	if err := c.overrides(); err != nil {
		t.Error(err)
	}
}

// Somebody edits another entry between the look and the write. What the write relies on is still there.
func TestReliesOnTheEntryAlone(t *testing.T) {
	c := installed(t, sr, sr)
	w := c.walker()
	w.step()
	w.operator.act()
	w.patcher.reader = lagging{w.patcher.reader, c.copyOf(versionObject)}
	v := c.clusterVersion()
	v.Spec.Overrides = append(v.Spec.Overrides, edit(0))
	if err := c.admin.Update(t.Context(), v, client.FieldOwner("oc")); err != nil {
		t.Fatal(err)
	}
	w.step()
	c.requireShaped(console.DownloadsName)
}
