// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch/unsupportedconfig"
)

// summary returns status and reason of each condition by type. Every condition must have a message.
func summary(t *testing.T, conditions []operatorv1.OperatorCondition) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, c := range conditions {
		got[c.Type] = string(c.Status) + " " + c.Reason
		if c.Message == "" {
			t.Errorf("%s has no message", c.Type)
		}
	}
	return got
}

func TestDeploymentConditions(t *testing.T) {
	deployment := func(status appsv1.DeploymentStatus) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)}, Status: status}
		return d
	}
	passed := []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}}
	for _, test := range []struct {
		name string
		live *appsv1.Deployment
		want [3]string
	}{
		{"none", nil, [3]string{"False NoPods", "True RollingOut", "False AsExpected"}},
		{"new", deployment(appsv1.DeploymentStatus{}), [3]string{"False NoPods", "True RollingOut", "False AsExpected"}},
		{"one of one", deployment(appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}),
			[3]string{"True AsExpected", "False AsExpected", "False AsExpected"}},
		{"rolling out next to the old one", deployment(appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1}),
			[3]string{"True AsExpected", "True RollingOut", "False AsExpected"}},
		{"stuck", deployment(appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1, Conditions: passed}),
			[3]string{"True AsExpected", "False RolloutStuck", "True RolloutStuck"}},
		{"stuck before, changed since", deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, Conditions: passed}),
			[3]string{"False NoPods", "True RollingOut", "False AsExpected"}},
	} {
		want := map[string]string{"XAvailable": test.want[0], "XProgressing": test.want[1], "XDegraded": test.want[2]}
		if diff := cmp.Diff(want, summary(t, deploymentConditions("X", test.live, ""))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestMinimumConditions(t *testing.T) {
	unreadable := fmt.Errorf("%w: perhaps", unsupportedconfig.ErrUnreadable)
	for _, test := range []struct {
		name    string
		minimum auth.Minimum
		nodes   int32
		want    [3]string
		message string
	}{
		{"enough", auth.Minimum{Nodes: 3}, 3, [3]string{"False AsExpected", "False AsExpected", "True AsExpected"}, ""},
		{"too few", auth.Minimum{Nodes: 3}, 1, [3]string{"True WaitingForNodes", "False AsExpected", "True AsExpected"}, "1 of 3"},
		{"overridden", auth.Minimum{Nodes: 1, Deprecation: "It is deprecated"}, 1,
			[3]string{"False AsExpected", "False AsExpected", "False UnsupportedConfigOverrides"}, "deprecated"},
		{"overridden by false", auth.Minimum{Nodes: 3, Deprecation: "It is deprecated"}, 1,
			[3]string{"True WaitingForNodes", "False AsExpected", "False UnsupportedConfigOverrides"}, "deprecated"},
		{"unreadable", auth.Minimum{Nodes: 3, Unreadable: unreadable}, 3, [3]string{"False AsExpected", "True UnreadableOverride", "False UnreadableOverride"}, "perhaps"},
		{"unreadable, too few", auth.Minimum{Nodes: 3, Unreadable: unreadable}, 1, [3]string{"True WaitingForNodes", "True UnreadableOverride", "False UnreadableOverride"}, "1 of 3"},
	} {
		conditions := minimumConditions(test.minimum, test.nodes)
		want := map[string]string{
			"ControlPlaneNodesProgressing": test.want[0], "ControlPlaneNodesDegraded": test.want[1], "UnsupportedConfigOverridesUpgradeable": test.want[2],
		}
		if diff := cmp.Diff(want, summary(t, conditions)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		all := ""
		for _, c := range conditions {
			all += c.Message + "\n"
		}
		if !strings.Contains(all, test.message) {
			t.Errorf("%s: %q is in none of the messages:\n%s", test.name, test.message, all)
		}
	}
}

func TestMerged(t *testing.T) {
	earlier, now := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	foreign := operatorv1.OperatorCondition{Type: "Foreign", Status: operatorv1.ConditionTrue, LastTransitionTime: earlier}
	at := func(c operatorv1.OperatorCondition, time metav1.Time) operatorv1.OperatorCondition {
		c.LastTransitionTime = time
		return c
	}
	present := []operatorv1.OperatorCondition{at(condition("A", true, "Old", "old"), earlier), foreign, at(condition("B", true, "Old", "old"), earlier)}
	before := append([]operatorv1.OperatorCondition(nil), present...)
	got := merged(present, []operatorv1.OperatorCondition{condition("A", true, "New", "new"), condition("B", false, "New", "new"), condition("C", true, "New", "new")}, now)
	want := []operatorv1.OperatorCondition{
		at(condition("A", true, "New", "new"), earlier), foreign, at(condition("B", false, "New", "new"), now), at(condition("C", true, "New", "new"), now),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, present); diff != "" {
		t.Errorf("the input was changed:\n%s", diff)
	}
}

// A new process continues with the state of the former one: the next requests give the same conditions.
func TestStateSurvivesARestart(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	down := []error{errNotServed}
	partly := []error{nil, errNotServed, nil}
	up := []error{nil}
	type requests struct {
		at     time.Duration
		probes []error
	}
	for _, test := range []struct {
		name   string
		mode   configv1.TopologyMode
		former []requests
		next   requests
		want   [3]string
	}{
		{"all well", sr, []requests{{0, up}}, requests{time.Minute, up}, [3]string{"True", "False", "False"}},
		{"in the middle of a rollout", sr, []requests{{0, up}, {time.Minute, down}}, requests{2 * time.Minute, down}, [3]string{"True", "True", "False"}},
		{"the rollout takes too long", sr, []requests{{0, up}, {time.Minute, down}}, requests{3*time.Minute + time.Second, down}, [3]string{"False", "False", "False"}},
		{"soon after it took too long", sr, []requests{{0, up}, {time.Minute, down}, {3*time.Minute + time.Second, down}}, requests{3*time.Minute + 2*time.Second, down}, [3]string{"False", "False", "False"}},
		{"still unavailable after five minutes", sr, []requests{{0, up}, {time.Minute, down}, {3*time.Minute + time.Second, down}}, requests{6*time.Minute + 2*time.Second, down}, [3]string{"False", "False", "True"}},
		{"degraded stays", sr, []requests{{0, up}, {time.Minute, down}, {6*time.Minute + time.Second, down}}, requests{6*time.Minute + 2*time.Second, down}, [3]string{"False", "False", "True"}},
		{"installation", sr, []requests{{0, down}}, requests{time.Minute, down}, [3]string{"False", "True", "False"}},
		{"outage of several", ha, []requests{{0, up}, {time.Minute, down}}, requests{6*time.Minute + 2*time.Second, down}, [3]string{"False", "False", "True"}},
		{"partly degraded stays", ha, []requests{{0, partly}, {6 * time.Minute, partly}}, requests{6*time.Minute + time.Second, partly}, [3]string{"True", "False", "True"}},
		{"over", sr, []requests{{0, up}, {time.Minute, down}, {7 * time.Minute, down}}, requests{8 * time.Minute, up}, [3]string{"True", "False", "False"}},
	} {
		var conditions []operatorv1.OperatorCondition
		state := auth.WellKnownState{}
		for _, l := range test.former {
			readiness := auth.WellKnownReadiness(test.mode, l.probes, state, start.Add(l.at))
			state = readiness.State
			conditions = merged(conditions, readiness.Conditions("WellKnown"), metav1.NewTime(start.Add(l.at)))
		}
		afterRestart := auth.WellKnownReadiness(test.mode, test.next.probes, publishedState(conditions, test.mode), start.Add(test.next.at))
		got := [3]string{}
		for i, c := range afterRestart.Conditions("WellKnown") {
			got[i] = string(c.Status)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: Available, Progressing, Degraded (-want +got):\n%s", test.name, diff)
		}
		onward := auth.WellKnownReadiness(test.mode, test.next.probes, state, start.Add(test.next.at))
		if diff := cmp.Diff(onward.Conditions("WellKnown"), afterRestart.Conditions("WellKnown")); diff != "" {
			t.Errorf("%s: a restart changes the conditions (-without +with):\n%s", test.name, diff)
		}
	}
	if diff := cmp.Diff(auth.WellKnownState{}, publishedState(nil, sr)); diff != "" {
		t.Errorf("nothing published (-want +got):\n%s", diff)
	}
}
