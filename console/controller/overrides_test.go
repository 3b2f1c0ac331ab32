package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
)

// hundred are overrides of other people, some of which look like ours but for one field.
func hundred() []configv1.ComponentOverride {
	ours := console.Override()
	list := []configv1.ComponentOverride{ours, ours, ours, ours}
	list[0].Kind, list[1].Group, list[2].Namespace, list[3].Name = "DaemonSet", "", "openshift-downloads", "console"
	for i := len(list); i < 100; i++ {
		list = append(list, configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: "n", Name: fmt.Sprint("d", i), Unmanaged: i%2 == 0})
	}
	return list
}

// rawOverrides is spec.overrides as the API server has it; absent when there is no such field.
func (c *cluster) rawOverrides() (text string, present bool) {
	c.Helper()
	v := get(c, object("config.openshift.io/v1", "ClusterVersion", "", console.ClusterVersionName), client.ObjectKey{Name: console.ClusterVersionName})
	list, present, err := unstructured.NestedFieldNoCopy(v.Object, "spec", "overrides")
	if err != nil {
		c.Fatal(err)
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		c.Fatal(err)
	}
	return string(encoded), present
}

// ownersOf is what a manager owns of the ClusterVersion.
func (c *cluster) ownersOf(manager string) string {
	c.Helper()
	text := ""
	for name, fields := range owned(c.T, c.clusterVersion()) {
		if strings.HasPrefix(name, manager+" ") {
			text += name + fields
		}
	}
	return text
}

// The list is a map: our entry comes and goes, a hundred of other people's stay byte for byte, and so do their owners.
func TestOthersOverridesStay(t *testing.T) {
	c := installed(t, sr, sr, hundred()...)
	before, _ := c.rawOverrides()
	owners := c.ownersOf("oc")
	if strings.Count(before, "unmanaged") != 100 || owners == "" {
		t.Fatalf("the start is wrong: %s, %s", before, owners)
	}
	w := c.walker()
	for _, mode := range []configv1.TopologyMode{sr, ha, sr, ha} {
		c.flip(mode, mode)
		w.settle()
		want := before
		if mode == sr {
			want = strings.TrimSuffix(before, "]") + `,{"group":"apps","kind":"Deployment","name":"downloads","namespace":"openshift-console","unmanaged":true}]`
		}
		if got, _ := c.rawOverrides(); got != want {
			t.Errorf("%s: overrides %s\nwant %s", mode, got, want)
		}
		if got := c.ownersOf("oc"); got != owners {
			t.Errorf("%s: the person owns %s\nwant %s", mode, got, owners)
		}
	}
}

// Where ours was the only entry, the field is gone and not null or empty, and the API server accepts that.
func TestLastOverride(t *testing.T) {
	c := installed(t, sr, sr)
	if _, present := c.rawOverrides(); present {
		t.Fatal("there are overrides at the start")
	}
	w := c.walker()
	w.settle()
	if err := c.overrides(console.Override()); err != nil {
		t.Fatal(err)
	}
	c.flip(ha, ha)
	w.settle()
	if text, present := c.rawOverrides(); present {
		t.Errorf("overrides are %s, want none", text)
	}
	c.requireNothingOfOurs(c.clusterVersion())
}

// Whoever changes what our entry says has made it theirs: downloads goes back to the release, and nothing of theirs is touched,
// not by force and not by letting go.
func TestEntryEditedByAnother(t *testing.T) {
	for _, force := range []bool{false, true} {
		t.Run(fmt.Sprint("force ", force), func(t *testing.T) {
			c := installed(t, sr, sr, hundred()[:2]...)
			c.force = force
			w := c.walker()
			w.settle()
			c.requireShaped(console.DownloadsName)

			edited := c.clusterVersion()
			at := slices.Index(edited.Spec.Overrides, console.Override())
			edited.Spec.Overrides[at].Unmanaged = false
			if err := c.admin.Update(t.Context(), edited, client.FieldOwner("oc")); err != nil {
				t.Fatal(err)
			}
			result := w.settle()
			if result.Reason != console.ReasonFieldOwnedByOther || !strings.Contains(result.Message, `"oc"`) || !strings.Contains(result.Message, "also with --force-conflicts") {
				t.Errorf("contradicted: %v", result)
			}
			if *c.deployment(console.DownloadsName).Spec.Replicas != 2 {
				t.Error("the release does not have downloads back")
			}
			c.flip(ha, ha)
			if result := w.settle(); result.Reason != console.ReasonNotNeeded {
				t.Errorf("letting go of what somebody else took: %v", result)
			}
			if err := c.overrides(edited.Spec.Overrides...); err != nil {
				t.Errorf("somebody else's entry was touched: %v", err)
			}
			c.server.NoWrites(t, us, func() { w.step(); w.step() })

			// With the whole entry goes what was left of us.
			edited = c.clusterVersion()
			edited.Spec.Overrides = slices.Delete(edited.Spec.Overrides, at, at+1)
			if err := c.admin.Update(t.Context(), edited, client.FieldOwner("oc")); err != nil {
				t.Fatal(err)
			}
			c.requireNothingOfOurs(c.clusterVersion())
			c.flip(sr, sr)
			w.settle()
			c.requireShaped(console.DownloadsName)
		})
	}
}

// Somebody says at the same time that the release shall manage downloads. Force is for Deployments: it does not overrule that.
func TestForceNeverReachesTheClusterVersion(t *testing.T) {
	c := installed(t, sr, sr)
	c.force = true
	w := c.walker()
	w.patcher.reader = lagging{w.patcher.reader, c.copyOf(versionObject)}
	v := c.clusterVersion()
	contrary := console.Override()
	contrary.Unmanaged = false
	v.Spec.Overrides = []configv1.ComponentOverride{contrary}
	if err := c.admin.Update(t.Context(), v, client.FieldOwner("oc")); err != nil {
		t.Fatal(err)
	}
	if result := w.step(); result != console.OverrideOwnedByOther("oc") {
		t.Errorf("%v", result)
	}
	if err := c.overrides(contrary); err != nil {
		t.Error(err)
	}
	if n := *c.deployment(console.DownloadsName).Spec.Replicas; n != 2 {
		t.Errorf("downloads wants %d replicas", n)
	}
}

// An entry of somebody else serves as it is, and is not ours to remove.
func TestSomebodyElsesEntryServes(t *testing.T) {
	c := installed(t, sr, sr)
	v := c.clusterVersion()
	v.Spec.Overrides = []configv1.ComponentOverride{console.Override()}
	if err := c.admin.Update(t.Context(), v, client.FieldOwner("oc")); err != nil {
		t.Fatal(err)
	}
	w := c.walker()
	for _, mode := range []configv1.TopologyMode{sr, ha} {
		c.flip(mode, mode)
		w.settle()
		if err := c.overrides(console.Override()); err != nil {
			t.Error(err)
		}
		c.requireNothingOfOurs(c.clusterVersion())
		if got := *c.deployment(console.DownloadsName).Spec.Replicas == 1; got != (mode == sr) {
			t.Errorf("%s: one replica: %v", mode, got)
		}
	}
}

// Somebody takes our entry off: that is not fought over. It is tried again after a pause.
func TestEntryRemovedByAnother(t *testing.T) {
	c := installed(t, sr, sr)
	w := c.walker()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))
	w.patcher.version.Clock, w.patcher.downloads.Clock = clock, clock
	w.settle()
	c.requireShaped(console.DownloadsName)
	c.patch(object("config.openshift.io/v1", "ClusterVersion", "", console.ClusterVersionName), "oc", `{"spec":{"overrides":null}}`)
	result := w.settle()
	if result.State != patch.Reverted || result.Reason != patch.ReasonReverted || result.After != apply.DefaultRevertPause {
		t.Errorf("after somebody removed the entry: %v, again in %s", result, result.After)
	}
	c.server.NoWrites(t, us, func() {
		for range 3 {
			w.step()
			w.operator.act()
		}
	})
	clock.SetTime(clock.Now().Add(apply.DefaultRevertPause))
	w.settle()
	if err := c.overrides(console.Override()); err != nil {
		t.Error(err)
	}
	// Meanwhile the release had downloads, which looks as if it had reverted us there too.
	clock.SetTime(clock.Now().Add(apply.DefaultRevertPause))
	w.settle()
	c.requireShaped(console.DownloadsName)
}

// Somebody reads, changes and writes the whole list all the time while downloads is taken over and given back. Nothing of theirs
// gets lost, and neither is our entry.
func TestOverridesEditedAtTheSameTime(t *testing.T) {
	c := installed(t, sr, sr, hundred()...)
	stopOperator := (&versionOperator{cluster: c}).work()
	defer stopOperator()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	written, conflicts := 0, 0
	go func() { done <- c.editor(ctx, &written, &conflicts) }()

	// It writes as the process does, one look after the other, with whatever it finds.
	w := c.walker()
	modes := []configv1.TopologyMode{sr, ha, sr, ha, sr}
	if testing.Short() {
		modes = modes[2:]
	}
	for round, mode := range modes {
		c.flip(mode, mode)
		c.eventually(fmt.Sprintf("round %d, %s", round, mode), func() error {
			result := w.step()
			if ours := slices.Contains(c.clusterVersion().Spec.Overrides, console.Override()); ours != (mode == sr) {
				return fmt.Errorf("our entry is there: %v (%v)", ours, result)
			}
			if mode == sr {
				return c.shaped(console.DownloadsName)
			}
			if n := *c.deployment(console.DownloadsName).Spec.Replicas; n != 2 {
				return fmt.Errorf("%d replicas (%v)", n, result)
			}
			return nil
		})
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got := c.clusterVersion().Spec.Overrides
	for i := range written {
		if !slices.Contains(got, edit(i)) {
			t.Errorf("the edit %d of somebody else is lost", i)
		}
	}
	for _, entry := range hundred() {
		if !slices.Contains(got, entry) {
			t.Errorf("somebody else's %+v is lost", entry)
		}
	}
	if len(got) != 100+written+1 {
		t.Errorf("%d entries, want %d", len(got), 100+written+1)
	}
	t.Logf("%d edits by somebody else, %d conflicts", written, conflicts)
	if written < 5 {
		t.Errorf("only %d edits at the same time: nothing is shown", written)
	}
}

func edit(i int) configv1.ComponentOverride {
	return configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: "editor", Name: fmt.Sprint("e", i), Unmanaged: true}
}

// editor adds one entry after the other, by an Update of the whole object.
func (c *cluster) editor(ctx context.Context, written, conflicts *int) error {
	for ctx.Err() == nil {
		v := &configv1.ClusterVersion{}
		if err := c.admin.Get(ctx, client.ObjectKey{Name: console.ClusterVersionName}, v); err != nil {
			return ignoreEnd(ctx, err)
		}
		v.Spec.Overrides = append(v.Spec.Overrides, edit(*written))
		switch err := c.admin.Update(context.WithoutCancel(ctx), v, client.FieldOwner("editor")); {
		case apierrors.IsConflict(err):
			*conflicts++
		case err != nil:
			return err
		default:
			*written++
		}
	}
	return nil
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
