package controller

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch"
)

// writeStatus is what the Deployment controller says of a Deployment's newest rollout.
func (c *cluster) writeStatus(name string, change func(*appsv1.Deployment)) {
	c.Helper()
	d := c.deployment(name)
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation}
	change(d)
	if err := c.admin.Status().Update(c.Context(), d, client.FieldOwner("kube-controller-manager")); err != nil {
		c.Fatal(err)
	}
}

// underWay has the old pod serving and the new one Pending.
func underWay(d *appsv1.Deployment) {
	d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas, d.Status.UnavailableReplicas = 2, 1, 1, 1, 1
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated"}}
}

// deadlocked is the same after the progress deadline.
func deadlocked(d *appsv1.Deployment) {
	underWay(d)
	d.Status.Conditions[0].Status, d.Status.Conditions[0].Reason = corev1.ConditionFalse, "ProgressDeadlineExceeded"
}

func complete(d *appsv1.Deployment) {
	d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1, 1, 1
}

// From two masters to one: the stock operator writes one replica without anti-affinity, and its old pods keep the new ones off the only node for
// ever. That is reported for each of the two, nothing is written, and it is over when the old pod is gone.
func TestStuckRolloutOfTheConsoleOperator(t *testing.T) {
	for _, name := range []string{console.ConsoleName, console.DownloadsName} {
		t.Run(name, func(t *testing.T) {
			c := stocked(t, "console", oldShape)
			c.stock("console", newShape)
			c.rollOut()
			w := c.walker()
			requires := func(state patch.State, reason string) {
				t.Helper()
				c.server.NoWrites(t, us, func() {
					result := w.step()
					if result.State != state || result.Reason != reason {
						t.Errorf("%v, want %s (%s)", result, state, reason)
					}
					if reason == console.ReasonRolloutStuck && (!strings.Contains(result.Message, "The rollout of "+name+",") || !strings.Contains(result.Message, "delete the old one")) {
						t.Errorf("the message has not the Deployment and the remedy: %s", result.Message)
					}
				})
			}
			c.writeStatus(name, underWay)
			requires(patch.NotNeeded, console.ReasonNotNeeded)
			c.writeStatus(name, deadlocked)
			requires(patch.Failed, console.ReasonRolloutStuck)
			requires(patch.Failed, console.ReasonRolloutStuck)
			c.writeStatus(name, complete)
			requires(patch.NotNeeded, console.ReasonNotNeeded)
		})
	}
}

// What is ours is released as ever where a console operator takes over and its rollout is stuck.
func TestStuckRolloutReleasesWhatIsOurs(t *testing.T) {
	c := installed(t, sr, sr)
	w := c.walker()
	w.settle()
	c.requireShaped(console.DownloadsName)
	var result patch.Result
	for range 5 {
		c.stock("console", newShape)
		c.writeStatus(console.DownloadsName, deadlocked)
		result = w.step()
		if err := w.operator.observe(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if result.Reason != console.ReasonRolloutStuck {
		t.Errorf("%v", result)
	}
	if err := c.overrides(); err != nil {
		t.Error(err)
	}
	c.requireNothingOfOurs(c.deployment(console.ConsoleName), c.deployment(console.DownloadsName), c.clusterVersion())
	c.server.NoWrites(t, us, func() { w.step(); w.step() })
}

// The conditions on the operator's resource tell of it.
func TestStuckRolloutIsShown(t *testing.T) {
	c := stocked(t, "console", oldShape)
	c.stock("console", newShape)
	c.rollOut()
	p := c.start()
	c.eventually("it stands back", c.shows("False", console.ReasonNotNeeded))
	c.writeStatus(console.ConsoleName, deadlocked)
	c.eventually("the stuck rollout is shown", c.shows("False", console.ReasonRolloutStuck))
	c.writeStatus(console.ConsoleName, complete)
	c.eventually("it is over", c.shows("False", console.ReasonNotNeeded))
	p.Stop()
}
