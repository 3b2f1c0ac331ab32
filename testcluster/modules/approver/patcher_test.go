// SPDX-License-Identifier: Apache-2.0

package approver_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/approver/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/modules"
)

// A configuration is created and the stock approver restarted once; both are undone.
func TestNodeClientOff(t *testing.T) {
	c := install(t)
	before := c.deployment().Generation
	l := c.reconciler()
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	if d := c.deployment(); !c.disabled() || d.Generation != before+1 || *d.Spec.Replicas != 1 || len(c.overrides()) != 1 {
		t.Errorf("%q, generation %d, was %d; overrides %v", c.text(), d.Generation, before, c.overrides())
	}
	l = c.reconciler() // a restart of the controller does not restart the stock approver
	l.CheckNoWrites()

	c.setTopology(ha)
	l.CheckResult(l.Settle(), patch.NotNeeded, "NotNeeded")
	c.NoError(c.checkReleased())
	if got := c.deployment().Generation; c.config() != nil || got != before+2 {
		t.Errorf("%v, generation %d, was %d; want one more restart", c.config(), got, before)
	}

	c.setTopology(sr)
	c.Delete(deploymentObject)
	l.CheckResult(l.Settle(), patch.NotNeeded, "NotNeeded")
	l.CheckNoWrites()
}

// A person's configuration keeps everything, with later and concurrent changes. A removed line is restored only on
// request.
func TestConfigurationOfAPerson(t *testing.T) {
	c := install(t)
	c.configure(personsConfig)
	l := c.reconciler()
	raced := false
	l.CrashInjector.BeforeRequest(func(r *http.Request) {
		if r.Method != http.MethodGet && !raced {
			raced = true
			c.configure(personsConfig + "raced: true\n")
		}
	})
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	text := c.text()
	if !c.disabled() {
		t.Errorf("the flow is not disabled:\n%s", text)
	}
	for line := range strings.Lines(personsConfig + "raced: true\n") {
		if !strings.Contains(text, line) {
			t.Errorf("a line is missing: %q", line)
		}
	}
	l.CheckNoWrites()

	generation := c.deployment().Generation
	c.Patch("kubectl-edit", configObject, `{"data":{"config.yaml":%q,"other":"x"}}`, text+"later: true\n")
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	if c.deployment().Generation != generation {
		t.Error("the change of another client restarted the stock approver")
	}
	l.CheckNoWrites()

	c.configure(personsConfig)
	c.Server.NoWrites(t, suite.User(), func() { l.CheckResult(l.Settle(), patch.Reverted, "Reverted") })
	c.Patch("kubectl-annotate", configObject, `{"metadata":{"annotations":{%q:null}}}`, editAnnotation)
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	if c.deployment().Generation != generation+1 {
		t.Error("the stock approver was not restarted to read the restored line")
	}

	c.Patch("kubectl-annotate", deploymentObject, optOut, `"approver"`)
	l.CheckResult(l.Settle(), patch.OptedOut, "OptedOut")
	if text := c.text(); text != personsConfig || c.config().Data["other"] != "x" {
		t.Errorf("the configuration was not restored:\n%s", text)
	}
	c.NoError(c.checkReleased())
	l.CheckNoWrites()
}

// Off sets the override before it scales, and releases in reverse. The stock approver never runs with the flow enabled
// in between.
func TestModeChanges(t *testing.T) {
	c := install(t)
	defer c.permit(off)()
	c.configure(personsConfig)
	l := c.reconciler(off)
	l.CheckResult(l.Reconcile(), patch.Progressing, "TakingOver")
	if *c.deployment().Spec.Replicas != 1 {
		t.Error("scaled before the cluster-version-operator observed the override")
	}
	neverEnabled := func() error {
		if !c.disabled() && *c.deployment().Spec.Replicas > 0 {
			return fmt.Errorf("the stock approver runs with\n%s", c.text())
		}
		return nil
	}
	l.Settle()
	for _, mode := range []string{nodeOff, off} {
		l = c.reconciler(mode)
		l.CrashInjector.BeforeRequest(func(*http.Request) {
			if err := neverEnabled(); err != nil {
				t.Errorf("changing to %s: %v", mode, err)
			}
		})
		l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
		c.NoError(neverEnabled())
	}
	if text := c.text(); text != personsConfig {
		t.Errorf("the module still owns the configuration:\n%s", text)
	}
	if *c.deployment().Spec.Replicas != 0 || len(c.overrides()) != 2 {
		t.Errorf("%d replicas, overrides %v", *c.deployment().Spec.Replicas, c.overrides())
	}
	c.scaleUp()
	l.CheckNoWrites()
	l.CrashInjector.BeforeRequest(nil)
	c.Patch("kubectl-annotate", versionObject, optOut, `"all"`)
	l.CheckResult(l.Settle(), patch.OptedOut, "OptedOut")
	c.NoError(c.checkReleased())
	l.CheckNoWrites()
}

// Who may write only the status of the Deployment makes the module neither release it nor restore values of his own.
func TestForgedRelease(t *testing.T) {
	for _, mode := range []string{nodeOff, off} {
		c := install(t)
		revoke := c.permit(mode)
		l := c.reconciler(mode)
		l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
		l.CheckForgeries(func() {
			c.setTopology(ha)
			l.CheckResult(l.Settle(), patch.NotNeeded, "NotNeeded")
		}, modules.Forgery{Object: deploymentObject, Values: map[string]string{".spec.replicas": "7", ".spec.template.spec.priorityClassName": `"forged"`}},
			modules.Forgery{Object: versionObject, Values: map[string]string{".spec.channel": `"forged"`}, Ignored: true})
		c.Clear()
		revoke()
	}
}

// Nothing is written if Machines cannot be read.
func TestMachinesUnreadable(t *testing.T) {
	c := install(t)
	c.serveMachines(openshift)
	l := c.reconciler()
	l.CrashInjector.FailReads("/machines")
	if result, err := l.Try(); err == nil {
		t.Errorf("a decision without Machines: %v", result)
	}
	c.NoError(c.checkReleased())
}

// Machines of either kind count. Nothing is written if one kind cannot be read.
func TestTwoKindsOfMachine(t *testing.T) {
	groups := []string{openshift, clusterAPI}
	c := install(t)
	for _, group := range groups {
		c.serveMachines(group)
	}
	l := c.reconciler()
	for _, group := range groups {
		l.CrashInjector.FailReads(group + "/v1beta1/machines")
		if result, err := l.Try(); err == nil {
			t.Errorf("a decision without Machines of %s: %v", group, result)
		}
		l.CrashInjector.FailReads("")
		machine := c.createMachine(group, "worker-1")
		l.CheckResult(l.Settle(), patch.NotNeeded, "NotNeeded")
		c.Delete(machine)
		c.NoError(c.checkReleased())
	}
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
}

// A dry run sends the first step, and writes nothing.
func TestDryRun(t *testing.T) {
	c := install(t)
	defer c.permit(off)()
	c.configure(personsConfig)
	dryRun := func() {
		t.Helper()
		text, generation, overrides := c.text(), c.deployment().Generation, len(c.overrides())
		for _, mode := range decision.Modes() {
			l := c.reconciler("--dry-run", "--mode="+string(mode))
			l.CheckResult(l.Reconcile(), patch.WouldChange, "DryRun")
		}
		if c.text() != text || c.deployment().Generation != generation || len(c.overrides()) != overrides {
			t.Error("a dry run wrote")
		}
	}
	dryRun()
	for _, mode := range []string{nodeOff, off} {
		c.setTopology(sr)
		c.reconciler(mode).Settle()
		c.setTopology(ha)
		dryRun()
	}
}

// checkState compares the replicas, the number of overrides and the configuration without the line of the module.
func (c *cluster) checkState(text string, disabled bool, replicas int32, entries int) error {
	got := c.text()
	without := got
	if disabled {
		without = ""
		for line := range strings.Lines(got) {
			if !strings.Contains(line, "# sno.solonode.github.io/approver") {
				without += line
			}
		}
	}
	d, overrides := c.deployment(), c.overrides()
	if without != text || c.disabled() != disabled || *d.Spec.Replicas != replicas || len(overrides) != entries {
		return fmt.Errorf("%d replicas, overrides %v:\n%s", *d.Spec.Replicas, overrides, got)
	}
	return nil
}

// After a crash at any request, or with a delayed write, the next run finishes, without further restarts of the stock
// approver.
func TestCrashAnywhere(t *testing.T) {
	const randomSeed = 1
	random := rand.New(rand.NewPCG(randomSeed, 0))
	crashes, texts := 40, []string{"", personsConfig}
	if testing.Short() {
		crashes, texts = 6, texts[1:]
	}
	nothing := func(*cluster) {}
	opt := func(value string) func(*cluster) {
		return func(c *cluster) { c.Patch("kubectl-annotate", deploymentObject, optOut, value) }
	}
	disabled := func(c *cluster, text string) error { return c.checkState(text, true, 1, 1) }
	stopped := func(c *cluster, text string) error { return c.checkState(text, false, 0, 2) }
	released := func(c *cluster, text string) error {
		return errors.Join(c.checkState(text, false, 1, 1), c.checkReleased())
	}
	changes := []struct {
		name, mode string
		make       func(*cluster)
		starts     int // how often the stock approver may be started or stopped
		check      func(*cluster, string) error
	}{
		{"disable", nodeOff, nothing, 1, disabled},
		{"opt out", nodeOff, opt(`"approver"`), 1, released},
		{"turn off", off, opt(`null`), 1, stopped},
		{"disable instead", nodeOff, nothing, 2, disabled},
		{"turn off instead", off, nothing, 1, stopped},
		{"highly available", off, func(c *cluster) { c.setTopology(ha) }, 1, released},
	}
	for _, text := range texts {
		t.Run(fmt.Sprintf("%d bytes", len(text)), func(t *testing.T) {
			c := install(t)
			defer c.permit(off)()
			if text != "" {
				c.configure(text)
			}
			crashed, starts := 0, c.watchStarts()
			for round := 0; crashed < crashes; round++ {
				c.setTopology(sr)
				for _, change := range changes {
					change.make(c)
					starts()
					crashed += c.crashRepeatedly(change.mode, random)
					l := c.reconciler(change.mode)
					l.CrashInjector.DeliverDelayed()
					if result := l.Settle(); change.check(c, text) != nil || !result.OK() {
						t.Fatalf("random seed %d, round %d, %s: %v, %v", randomSeed, round, change.name, result, change.check(c, text))
					}
					if got := starts(); got > change.starts {
						t.Errorf("round %d, %s: the stock approver was started or stopped %d times, want %d", round, change.name, got, change.starts)
					}
					l.CheckNoWrites()
				}
			}
		})
	}
}

func (c *cluster) watchStarts() func() int {
	c.Helper()
	watcher, err := c.Admin.Watch(c.Context(), &appsv1.DeploymentList{}, client.InNamespace(namespace))
	c.NoError(err)
	c.Cleanup(watcher.Stop)
	last, seen := "", ""
	return func() (starts int) {
		for until := c.deployment().ResourceVersion; seen != until; {
			d := (<-watcher.ResultChan()).Object.(*appsv1.Deployment)
			if now := fmt.Sprint(*d.Spec.Replicas, d.Spec.Template.Annotations[editAnnotation]); now != last {
				last = now
				starts++
			}
			seen = d.ResourceVersion
		}
		return starts
	}
}

// crashRepeatedly runs four controllers, and returns how many crashed.
func (c *cluster) crashRepeatedly(moduleMode string, random *rand.Rand) (crashed int) {
	for range 4 {
		l := c.reconciler(moduleMode)
		if mode := apiserver.CrashMode(random.IntN(int(apiserver.CrashModes))); random.IntN(2) == 0 {
			l.CrashInjector.CrashAtWrite(1, mode)
		} else {
			l.CrashInjector.CrashAt(1+random.IntN(8), mode)
		}
		_, _ = l.Try() // fails at a crash
		if l.CrashInjector.Crashed() {
			crashed++
		}
		c.versionOperator.Observe()
		c.CompleteRollouts(deploymentObject)
		if random.IntN(3) == 0 {
			l.CrashInjector.DeliverDelayed()
		}
	}
	return crashed
}
