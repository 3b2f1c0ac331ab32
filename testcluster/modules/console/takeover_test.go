// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/console/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/operand"
	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/testcluster/modules"
)

// R-CON-2, R-SNO-4, R-SNO-6: downloads is taken over and released with the topology. A release restores spec, owners
// and overrides, and nothing is written while nothing changes.
func TestTakesOverAndReleases(t *testing.T) {
	objects := []controller.Object{consoleObject, downloadsObject, versionObject}
	for _, n := range []int{0, 100} {
		t.Run(fmt.Sprint(n, " entries of others"), func(t *testing.T) {
			c := installed(t, sr, others(n)...)
			before, theirs := c.snapshot(objects...), c.rawOverrides()
			l := c.reconciler()
			for _, mode := range []configv1.TopologyMode{sr, ha, sr} {
				c.SetTopology(mode, mode)
				result := l.Settle()
				if mode == sr {
					l.CheckResult(result, patch.InForce, "AsExpected")
					c.Check(c.shaped(deployments...))
					want := strings.TrimSuffix(theirs, "]") +
						`,{"group":"apps","kind":"Deployment","name":"downloads","namespace":"openshift-console","unmanaged":true}]`
					if got := c.rawOverrides(); n > 0 && got != want {
						t.Errorf("overrides %s\nwant %s", got, want)
					}
				} else {
					l.CheckResult(result, patch.NotNeeded, "NotNeeded")
					c.Check(c.untouched)
					if diff := cmp.Diff(before, c.snapshot(objects...)); diff != "" {
						t.Errorf("not restored (-want +got):\n%s", diff)
					}
				}
				l.CheckNoWrites()
			}
		})
	}
}

// Who may write only the status of a Deployment makes the module neither release it nor restore values of his own.
func TestForgedRelease(t *testing.T) {
	c := installed(t, sr)
	l := c.reconciler()
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	forged := map[string]string{operand.FieldNodeSelector: `{"forged":"true"}`, ".spec.template.spec.priorityClassName": `"system-node-critical"`}
	l.CheckForgeries(func() {
		c.SetTopology(ha, ha)
		l.CheckResult(l.Settle(), patch.NotNeeded, "NotNeeded")
	}, modules.Forgery{Object: consoleObject, Values: forged}, modules.Forgery{Object: downloadsObject, Values: forged},
		modules.Forgery{Object: versionObject, Values: map[string]string{".spec.channel": `"forged"`}, Ignored: true})
	c.Check(c.untouched)
}

func (c *cluster) rawOverrides() string {
	c.Helper()
	spec := c.snapshot(versionObject)[0]["spec"].(map[string]any)
	encoded, err := json.Marshal(spec["overrides"])
	c.NoError(err)
	return string(encoded)
}

// After a crash at any write, downloads keeps running, and the next process finishes the takeover or the release.
func TestCrashAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make proof runs it")
	}
	for name, modes := range map[string][2]configv1.TopologyMode{"taking over": {ha, sr}, "releasing": {sr, ha}} {
		t.Run(name, func(t *testing.T) {
			modules.CrashAtEveryWrite(t, 4, func(t *testing.T, crash func(*modules.Reconciler)) bool {
				c := installed(t, modes[0], others(3)...)
				defer c.Clear()
				before := c.snapshot(downloadsObject)
				c.reconciler().Settle()
				defer c.guard()()
				c.SetTopology(modes[1], modes[1])
				l := c.reconciler()
				crash(l.Reconciler)
				l.CrashInjector.BeforeRequest(func(r *http.Request) {
					if r.Method != http.MethodGet {
						c.release.RunOnce()
					}
				})
				crashed := l.UntilCrash()

				result := c.reconciler().Settle()
				if modes[1] == sr {
					c.Check(c.shaped(deployments...), c.overrides(append(others(3), decision.Override())...))
					return crashed
				}
				if diff := cmp.Diff(before, c.snapshot(downloadsObject)); diff != "" {
					t.Errorf("%v: downloads is not restored (-want +got):\n%s", result, diff)
				}
				c.Check(c.overrides(others(3)...), c.untouched)
				return crashed
			})
		})
	}
}

// guard fails the test if downloads is ever deleted or scaled to 0, until the returned function is called.
func (c *cluster) guard() (stop func()) {
	c.Helper()
	w, err := c.Admin.Watch(c.Context(), &appsv1.DeploymentList{}, client.InNamespace(console.Namespace))
	c.NoError(err)
	const last = "last-event"
	var wait sync.WaitGroup
	seen := 0
	wait.Go(func() {
		defer w.Stop()
		for event := range w.ResultChan() {
			d, ok := event.Object.(*appsv1.Deployment)
			switch {
			case !ok:
				c.Errorf("unexpected event %+v", event)
			case d.Name == console.ConsoleName && d.Annotations[last] != "":
				return
			case d.Name != console.DownloadsName:
			case event.Type == watch.Deleted || d.DeletionTimestamp != nil || d.Spec.Replicas == nil || *d.Spec.Replicas < 1:
				c.Errorf("downloads is deleted or scaled to 0: %+v", d)
			default:
				seen++
			}
		}
	})
	return func() {
		c.Patch("test", consoleObject, `{"metadata":{"annotations":{%q:"yes"}}}`, last)
		wait.Wait()
		if seen == 0 {
			c.Error("the watch got no event of downloads")
		}
	}
}

// The shape removes the anti-affinity between the Deployment's own pods, keeps other terms, and leaves no empty object.
// A release restores the terms and their owner.
func TestAntiAffinityRemovedAndRestored(t *testing.T) {
	own, other := onNode(map[string]string{"app": "console", "component": "downloads"}), onNode(map[string]string{"app": "noisy"})
	zone := own
	zone.TopologyKey = "topology.kubernetes.io/zone"
	type terms = []corev1.PodAffinityTerm
	anti := func(required, preferred terms) *corev1.Affinity {
		a := &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}
		for _, term := range preferred {
			weighted := corev1.WeightedPodAffinityTerm{Weight: 1, PodAffinityTerm: term}
			a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution, weighted)
		}
		return &corev1.Affinity{PodAntiAffinity: a}
	}
	nodes := &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1,
		Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}}}}}}
	withNodes := anti(terms{own}, nil)
	withNodes.NodeAffinity = nodes

	for name, test := range map[string]struct{ before, shaped *corev1.Affinity }{
		"its own":                   {anti(terms{own}, nil), nil},
		"its own in both lists":     {anti(terms{own}, terms{own}), nil},
		"its own, preferred":        {anti(nil, terms{own}), nil},
		"its own and another's":     {anti(terms{own, other}, nil), anti(terms{other}, nil)},
		"another's, preferred":      {anti(terms{own}, terms{other, own, zone}), anti(nil, terms{other, zone})},
		"only another's":            {anti(terms{other}, nil), anti(terms{other}, nil)},
		"its own and node affinity": {withNodes, &corev1.Affinity{NodeAffinity: nodes}},
		"another's empty rule":      {anti(nil, nil), anti(nil, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, ha)
			c.Apply("installer", operatorOf(""), unshaped(consoleObject))
			c.installVersion()
			made := manifest(console.DownloadsName)
			made.Spec.Template.Spec.Affinity = test.before.DeepCopy()
			c.Create(overrides.ClusterVersionOperator, made)
			c.CompleteRollouts(downloadsObject)
			before := c.snapshot(downloadsObject)
			l := c.reconciler()
			// The cluster-version-operator writes nothing, so it restores nothing.
			l.OtherClients = []func(){c.release.Observe}
			for what, release := range map[string]func(){
				"topology": func() { c.SetTopology(ha, ha) }, "opt-out": func() { c.Patch("oc", operatorObject, optOut, `"console"`) },
			} {
				c.SetTopology(sr, sr)
				c.Patch("oc", operatorObject, optOut, "null")
				l.Settle()
				taken := c.deployment(downloadsObject)
				if diff := cmp.Diff(test.shaped, taken.Spec.Template.Spec.Affinity); diff != "" {
					t.Errorf("%s: affinity (-want +got):\n%s", what, diff)
				}
				if err := c.Untouched(downloadsObject); err == nil {
					t.Errorf("%s: the module owns nothing", what)
				}
				l.CheckNoWrites()
				// After the first rollout maxUnavailable changes without a new rollout.
				c.CompleteRollouts(downloadsObject)
				l.Settle()
				rolled := c.deployment(downloadsObject)
				if diff := cmp.Diff(taken.Spec.Template, rolled.Spec.Template); diff != "" || rolled.Spec.Strategy.RollingUpdate.MaxUnavailable.IntVal != 0 {
					t.Errorf("%s: %+v; the pod template later (-want +got):\n%s", what, rolled.Spec.Strategy.RollingUpdate, diff)
				}
				release()
				l.Settle()
				if diff := cmp.Diff(before, c.snapshot(downloadsObject)); diff != "" {
					t.Errorf("%s: not restored (-want +got):\n%s", what, diff)
				}
				c.Check(c.untouched)
			}
		})
	}
}

// When another client changes the entry, downloads is released and the entry stays, also with --force-conflicts.
func TestEntryEditedByAnother(t *testing.T) {
	for _, force := range []bool{false, true} {
		t.Run(fmt.Sprint("force ", force), func(t *testing.T) {
			c := installed(t, sr, others(2)...)
			l := c.reconciler(fmt.Sprint("--force-conflicts=", force))
			l.Settle()
			c.Check(c.shaped(downloadsObject))

			edited := c.version().Spec.Overrides
			edited[2].Unmanaged = false
			c.edit(edited...)
			l.CheckResult(l.Settle(), patch.Blocked, "FieldOwnedByOther", `"oc"`, "also with --force-conflicts")
			c.Check(c.replicas(downloadsObject, 2))
			c.SetTopology(ha, ha)
			l.CheckResult(l.Settle(), patch.NotNeeded, "NotNeeded")
			c.Check(c.overrides(edited...))
			l.CheckNoWrites()

			c.edit(others(2)...)
			c.Check(func() error { return c.Untouched(versionObject) })
			c.SetTopology(sr, sr)
			l.Settle()
			c.Check(c.shaped(downloadsObject))
		})
	}
}

// --force-conflicts does not overwrite a conflicting entry that is written at the same time.
func TestForceDoesNotTakeTheEntry(t *testing.T) {
	c := installed(t, sr)
	conflicting := decision.Override()
	conflicting.Unmanaged = false
	l := c.reconciler("--force-conflicts")
	var once sync.Once
	l.CrashInjector.BeforeRequest(func(r *http.Request) {
		if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "clusterversions") {
			once.Do(func() { c.edit(conflicting) })
		}
	})
	result, err := l.Step()
	if want := *decision.OverrideOwnedByOther("oc"); err != nil || result.State != want.State || result.Message != want.Message {
		t.Errorf("%v, %v", result, err)
	}
	l.Settle()
	c.Check(c.overrides(conflicting), c.replicas(downloadsObject, 2))
}

// An entry of another client with unmanaged: true is used, and not removed.
func TestEntryOfAnother(t *testing.T) {
	c := installed(t, sr, decision.Override())
	l := c.reconciler()
	for _, test := range []struct {
		mode     configv1.TopologyMode
		replicas int32
	}{{sr, 1}, {ha, 2}} {
		c.SetTopology(test.mode, test.mode)
		l.Settle()
		c.Check(c.overrides(decision.Override()), func() error { return c.Untouched(versionObject) }, c.replicas(downloadsObject, test.replicas))
	}
}

// If another client removes the entry, it is set again after a back-off, or by another process.
func TestEntryRemovedByAnother(t *testing.T) {
	c := installed(t, sr)
	l := c.reconciler()
	l.Settle()
	c.Check(c.shaped(downloadsObject))
	c.Patch("oc", versionObject, `{"spec":{"overrides":null}}`)
	result := l.Settle()
	l.CheckResult(result, patch.Reverted, "Reverted")
	if result.After <= apply.DefaultRevertBackoff-time.Minute || result.After > apply.DefaultRevertBackoff {
		t.Errorf("retry in %s", result.After)
	}
	l.CheckNoWrites()
	// The cluster-version-operator has written downloads meanwhile.
	l = c.reconciler()
	l.Settle()
	c.Check(c.overrides(decision.Override()), c.shaped(downloadsObject))
}

// No entry is lost while another client keeps updating the list.
func TestConcurrentOverrideUpdates(t *testing.T) {
	c := installed(t, sr, others(100)...)
	defer c.release.RunInBackground()()
	edit := func(i int) configv1.ComponentOverride {
		return configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: "editor", Name: fmt.Sprint("e", i), Unmanaged: true}
	}
	updates, stop := c.KeepEditing("editor", versionObject, func(u *unstructured.Unstructured, n int) {
		list, _, err := unstructured.NestedSlice(u.Object, "spec", "overrides")
		added, encodeErr := runtime.DefaultUnstructuredConverter.ToUnstructured(ptr.To(edit(n)))
		if err = errors.Join(err, encodeErr, unstructured.SetNestedSlice(u.Object, append(list, added), "spec", "overrides")); err != nil {
			t.Error(err)
		}
	})
	l := c.reconciler()
	for round, mode := range []configv1.TopologyMode{sr, ha, sr, ha, sr} {
		before := updates()
		c.SetTopology(mode, mode)
		c.Eventually(fmt.Sprintf("round %d, %s", round, mode), func() error {
			result, err := l.Step()
			if ours := slices.Contains(c.version().Spec.Overrides, decision.Override()); err != nil || ours != (mode == sr) {
				return errors.Join(err, fmt.Errorf("the entry is set: %t (%v)", ours, result))
			}
			if updates() == before {
				return errors.New("the other client has not updated it since")
			}
			if mode == sr {
				return c.shaped(downloadsObject)()
			}
			return c.replicas(downloadsObject, 2)()
		})
	}
	written := stop()
	want := append(others(100), decision.Override())
	for i := range written {
		want = append(want, edit(i))
	}
	got := c.version().Spec.Overrides
	for _, entry := range want {
		if !slices.Contains(got, entry) {
			t.Errorf("%+v is lost", entry)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d entries after %d concurrent updates, want %d", len(got), written, len(want))
	}
}

// Only the cluster-version-operator creates downloads, so the override is released until downloads exists again.
func TestDownloadsDeletedDuringTakeover(t *testing.T) {
	step := func(l reconciler) { _, err := l.Step(); l.NoError(err) }
	for name, before := range map[string]func(*cluster, reconciler){
		"before the override":             func(*cluster, reconciler) {},
		"before the override is observed": func(_ *cluster, l reconciler) { step(l) },
		"when the override is observed":   func(c *cluster, l reconciler) { step(l); c.release.RunOnce() },
		"when it is shaped":               func(c *cluster, l reconciler) { step(l); c.release.RunOnce(); step(l) },
		"when nothing changes":            func(_ *cluster, l reconciler) { l.Settle() },
		"while it is being released": func(c *cluster, l reconciler) {
			l.Settle()
			c.SetTopology(ha, ha)
			step(l)
			c.SetTopology(sr, sr)
		},
	} {
		for _, observed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, observed only afterwards %t", name, observed), func(t *testing.T) {
				c := installed(t, sr, others(2)...)
				l := c.reconciler()
				before(c, l)
				c.Delete(downloadsObject)
				if observed {
					c.release.RunOnce()
				}
				if result := l.Reconcile(); result.State != patch.Waiting && result.State != patch.Progressing {
					t.Errorf("after the deletion: %v", result)
				}
				l.Settle()
				c.Check(c.shaped(downloadsObject), c.overrides(append(others(2), decision.Override())...))
			})
		}
	}
}

// Without a ClusterVersion nothing is written. Without downloads the override is released.
func TestObjectsDeleted(t *testing.T) {
	c := installed(t, sr)
	l := c.reconciler()
	l.Settle()
	before := c.deployment(downloadsObject)
	c.Delete(versionObject)
	c.Server.NoWrites(t, suite.User(), func() { l.CheckResult(l.Reconcile(), patch.Waiting, "WaitingForObject") })
	if diff := cmp.Diff(before.Spec, c.deployment(downloadsObject).Spec); diff != "" {
		t.Errorf("downloads changed:\n%s", diff)
	}
	c.installVersion()
	l.Reconcile() // before the release writes downloads
	l.Settle()
	c.Check(c.shaped(downloadsObject), c.overrides(decision.Override()))

	l.OtherClients = nil
	c.Delete(downloadsObject)
	l.CheckResult(l.Settle(), patch.Waiting, "WaitingForObject")
	c.Check(c.overrides())
	l.CheckNoWrites()
}

func TestManagementState(t *testing.T) {
	for state, want := range map[operatorv1.ManagementState]patch.State{operatorv1.Removed: patch.NotNeeded, operatorv1.Unmanaged: patch.OptedOut} {
		t.Run(string(state), func(t *testing.T) {
			c := installed(t, sr)
			l := c.reconciler()
			l.Settle()
			c.Patch("oc", operatorObject, managementState, state)
			l.CheckResult(l.Settle(), want, want.String())
			c.Check(c.overrides(), c.untouched)
			l.CheckNoWrites()
			if state == operatorv1.Removed {
				c.Delete(downloadsObject, consoleObject) // as the console operator does
				l.CheckResult(l.Reconcile(), want, want.String())
				return
			}
			c.Patch("oc", operatorObject, managementState, operatorv1.Managed)
			l.Settle()
			c.Check(c.shaped(deployments...))
		})
	}
}

func TestDryRunAndForbidden(t *testing.T) {
	c := installed(t, sr)
	l := c.reconciler("--dry-run")
	l.CheckResult(l.Reconcile(), patch.WouldChange, "DryRun", "Dry run: an override for downloads would be added to the ClusterVersion")
	c.Check(c.untouched)
	c.reconciler().Settle()
	c.SetTopology(ha, ha)
	l.CheckResult(l.Reconcile(), patch.WouldChange, "DryRun", "Dry run: the patch would be released. ")
	c.Check(c.shaped(deployments...))
	c.reconciler().Settle()
	c.SetTopology(sr, sr)
	nobody := c.ReconcilerOf(func(made *modules.Reconciler) (controller.ReconcileFunc, error) {
		env := made.Environment
		env.Client = c.Server.Client(t, "nobody")
		return made.Module.Reconciler(env)
	})
	result, err := nobody.Try()
	if nobody.CheckResult(result, patch.Failed, "Forbidden", "clusterversions.config.openshift.io"); err != nil || result.After == 0 {
		t.Errorf("%v, %v, retry in %s", result, err, result.After)
	}
}
