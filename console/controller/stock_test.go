package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
)

// stocked is a cluster whose console operator makes both Deployments.
func stocked(t *testing.T, fieldManager string, change func(*appsv1.Deployment)) *cluster {
	t.Helper()
	c := newCluster(t, shared.Server(t))
	c.installInfrastructure(sr, sr)
	c.installOperator(operatorv1.Managed)
	c.installVersion()
	for _, name := range []string{console.ConsoleName, console.DownloadsName} {
		d := manifest(name)
		change(d)
		c.install(fieldManager, d)
	}
	return c
}

// stock writes both Deployments as the stock operator does on every sync: as it wants them, by Update.
func (c *cluster) stock(fieldManager string, change func(*appsv1.Deployment)) {
	c.Helper()
	for _, name := range []string{console.ConsoleName, console.DownloadsName} {
		d := c.deployment(name)
		want := manifest(name)
		change(want)
		d.Spec = want.Spec
		if err := c.admin.Update(c.Context(), d, client.FieldOwner(fieldManager)); err != nil {
			c.Fatal(err)
		}
	}
}

func oldShape(*appsv1.Deployment) {}

// newShape is what a stock operator that knows topology makes on one node.
func newShape(d *appsv1.Deployment) {
	d.Spec.Replicas = ptr.To[int32](1)
	d.Spec.Template.Spec.Affinity.PodAntiAffinity = nil
}

// Where a console operator writes the Deployments, nothing at all is written: there is no fight to begin with.
func TestStandsBackFromTheConsoleOperator(t *testing.T) {
	for _, manager := range console.StockManagers() {
		for name, test := range map[string]struct {
			shape  func(*appsv1.Deployment)
			reason string
		}{
			"two replicas":   {oldShape, console.ReasonFieldOwnedByOther},
			"knows topology": {newShape, console.ReasonNotNeeded},
		} {
			t.Run(manager+", "+name, func(t *testing.T) {
				c := stocked(t, manager, test.shape)
				w := c.walker()
				c.server.NoWrites(t, us, func() {
					for range 3 {
						result := w.step()
						if result.Reason != test.reason {
							t.Errorf("%v, want %s", result, test.reason)
						}
						if test.reason == console.ReasonFieldOwnedByOther && !strings.Contains(result.Message, fmt.Sprintf("%q", manager)) {
							t.Errorf("the message does not name %q: %s", manager, result.Message)
						}
						c.stock(manager, test.shape)
					}
				})
			})
		}
	}
}

// Forced over a console operator that writes its own shape again and again: that is reported and left alone, with one more try
// after every pause, which grows.
func TestConsoleOperatorReverts(t *testing.T) {
	c := stocked(t, "console", oldShape)
	c.force = true
	w := c.walker()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))
	w.patcher.downloads.Clock, w.patcher.console.Clock = clock, clock
	w.step()
	c.requireShaped(console.ConsoleName, console.DownloadsName)
	for pause := apply.DefaultRevertPause; pause < 40*time.Minute; pause *= 2 {
		c.stock("console", oldShape)
		var result patch.Result
		c.server.NoWrites(t, us, func() {
			for range 3 {
				result = w.step()
			}
		})
		if result.State != patch.Reverted || result.After != pause || !strings.Contains(result.Message, `"console"`) {
			t.Errorf("after the console operator wrote: %v, again in %s, want %s", result, result.After, pause)
		}
		clock.SetTime(clock.Now().Add(pause))
		w.step()
		c.requireShaped(console.ConsoleName, console.DownloadsName)
	}
}

// A console operator that comes with an update takes both Deployments: the override goes, because it serves nothing anymore.
func TestConsoleOperatorTakesOver(t *testing.T) {
	c := installed(t, sr, sr)
	w := c.walker()
	w.settle()
	c.requireShaped(console.DownloadsName)
	c.stock("console", newShape)
	// The release of that version has no manifest for downloads, so its cluster-version-operator writes nothing.
	for range 4 {
		w.step()
		if err := w.operator.observe(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.stock("console", newShape)
	}
	if result := w.step(); result.Reason != console.ReasonNotNeeded {
		t.Errorf("%v", result)
	}
	if err := c.overrides(); err != nil {
		t.Error(err)
	}
	c.requireNothingOfOurs(c.deployment(console.ConsoleName), c.deployment(console.DownloadsName), c.clusterVersion())
	for _, name := range []string{console.ConsoleName, console.DownloadsName} {
		if n := *c.deployment(name).Spec.Replicas; n != 1 {
			t.Errorf("%s wants %d replicas", name, n)
		}
	}
	c.server.NoWrites(t, us, func() { w.step(); w.step() })
}

// managementState tells operators what to do, and this module heeds it.
func TestManagementState(t *testing.T) {
	for state, reason := range map[operatorv1.ManagementState]string{
		operatorv1.Removed: console.ReasonNotNeeded, operatorv1.Unmanaged: console.ReasonOptedOut,
	} {
		t.Run(string(state), func(t *testing.T) {
			c := installed(t, sr, sr)
			w := c.walker()
			w.settle()
			c.manage(state)
			if result := w.settle(); result.Reason != reason {
				t.Errorf("%v, want %s", result, reason)
			}
			if err := c.overrides(); err != nil {
				t.Error(err)
			}
			c.requireNothingOfOurs(c.deployment(console.ConsoleName), c.deployment(console.DownloadsName), c.clusterVersion())
			c.server.NoWrites(t, us, func() { w.step(); w.step() })
			if state == operatorv1.Removed {
				// The operator deletes what is its to delete.
				c.removeDownloads()
				c.remove(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: console.Namespace, Name: console.ConsoleName}})
				if result := w.step(); result.Reason != reason {
					t.Errorf("%v, want %s", result, reason)
				}
				return
			}
			c.manage(operatorv1.Managed)
			w.settle()
			c.requireShaped(console.ConsoleName, console.DownloadsName)
		})
	}
}
