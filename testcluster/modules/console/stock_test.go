// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/controller"
)

// With --force-conflicts, a console operator that reverts the shape is reported, and the module writes again with a
// back-off. Without the flag it writes nothing.
func TestConsoleOperatorReverts(t *testing.T) {
	c := stocked(t, twoReplicas)
	l := c.reconciler()
	c.Server.NoWrites(t, suite.User(), func() {
		for range 2 {
			l.CheckResult(l.Reconcile(), patch.Blocked, "FieldOwnedByOther")
			c.stock(twoReplicas)
		}
	})
	l = c.reconciler("--force-conflicts")
	l.Reconcile()
	c.Check(c.shaped(deployments...))
	c.stock(twoReplicas)
	l.CheckNoWrites()
	result := l.Reconcile()
	l.CheckResult(result, patch.Reverted, "Reverted", `"console"`)
	if result.After <= apply.DefaultRevertBackoff-time.Minute || result.After > apply.DefaultRevertBackoff {
		t.Errorf("retry in %s", result.After)
	}
	// Another process does not know of the revert.
	l = c.reconciler("--force-conflicts")
	l.Reconcile()
	c.Check(c.shaped(deployments...))
}

func (c *cluster) status(o controller.Object, deadline bool) {
	c.Helper()
	status, reason := corev1.ConditionTrue, "ReplicaSetUpdated"
	if deadline {
		status, reason = corev1.ConditionFalse, "ProgressDeadlineExceeded"
	}
	c.PatchStatus("kube-controller-manager", o, `{"status":{"observedGeneration":%d,"replicas":2,"updatedReplicas":1,"readyReplicas":1,
		"availableReplicas":1,"unavailableReplicas":1,"conditions":[{"type":"Progressing","status":%q,"reason":%q}]}}`,
		c.deployment(o).Generation, status, reason)
}

// When an updated console operator takes both Deployments, the override is released, also while a rollout is stuck.
func TestConsoleOperatorTakesOver(t *testing.T) {
	for stuck, want := range map[bool]patch.Result{
		false: {State: patch.NotNeeded, Reason: "NotNeeded"},
		true:  {State: patch.Failed, Reason: "RolloutStuck"},
	} {
		t.Run(fmt.Sprint("stuck ", stuck), func(t *testing.T) {
			c := installed(t, sr)
			l := c.reconciler()
			l.Settle()
			c.Check(c.shaped(downloadsObject))
			// The new release does not contain downloads.
			l.OtherClients = []func(){c.release.Observe, func() { c.stock(oneReplica); c.status(downloadsObject, stuck) }}
			l.CheckResult(l.Settle(), want.State, want.Reason)
			c.Check(c.overrides(), c.untouched, c.replicas(consoleObject, 1), c.replicas(downloadsObject, 1))
			l.CheckNoWrites()
		})
	}
}

// When two control-plane nodes become one, old pods of the console operator block its rollout. That is reported for
// each Deployment, and nothing is written.
func TestStuckRolloutOfTheConsoleOperator(t *testing.T) {
	for _, o := range deployments {
		t.Run(o.Name, func(t *testing.T) {
			c := stocked(t, twoReplicas)
			c.stock(oneReplica)
			l := c.reconciler()
			c.Server.NoWrites(t, suite.User(), func() {
				c.status(o, false)
				l.CheckResult(l.Reconcile(), patch.NotNeeded, "NotNeeded")
				c.status(o, true)
				for range 2 {
					l.CheckResult(l.Reconcile(), patch.Failed, "RolloutStuck", "The rollout of the "+o.Name+" Deployment,", "delete the old one")
				}
				c.PatchStatus("kube-controller-manager", o, `{"status":{"replicas":1,"unavailableReplicas":0}}`)
				l.CheckResult(l.Reconcile(), patch.NotNeeded, "NotNeeded")
			})
		})
	}
}
