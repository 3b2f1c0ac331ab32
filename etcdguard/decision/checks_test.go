// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"errors"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/etcdguard/decision"
	"github.com/solonode/sno/etcdguard/internal/fixture"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/topologytest"
)

func TestChecks(t *testing.T) {
	var names []string
	for _, check := range decision.Checks() {
		names = append(names, check.Name)
	}
	if got := strings.Join(names, " "); got != "Valid TopologyKnown Readable OptedOut EtcdHere OperatorGuards NoOperatorOwns OverridesFree "+
		"ClusterVersionThere NodesKnown Adoptable FieldsFree" {
		t.Errorf("the order is %s", got)
	}
	optOut := func(value string) map[string]string { return map[string]string{patch.OptOutAnnotation: value} }
	wholeList := func(in *decision.Inputs) { signedOnly(in.ClusterVersion, person, `{"f:spec":{"f:overrides":{}}}`) }
	for name, test := range map[string]struct {
		in      decision.Inputs
		message []string
	}{
		"nothing wrong": {with(topologytest.HA, 5), nil},
		"one node":      {with(topologytest.SR, 1), nil},
		"opted out on the guard": {with(topologytest.HA, 5, func(in *decision.Inputs) { in.Deployment.Annotations = optOut("etcdguard") }),
			[]string{patch.OptOutAnnotation, "remove it"}},
		"opted out on the budget": {with(topologytest.HA, 5, func(in *decision.Inputs) { in.Budget.Annotations = optOut("ingress, etcdguard") }),
			[]string{"keeps this module away"}},
		"opted out on the cluster": {with(topologytest.HA, 5, func(in *decision.Inputs) { in.ClusterVersion.Annotations = optOut("all") }),
			[]string{"keeps this module away"}},
		"opted out on etcd": {with(topologytest.HA, 5, conditions(), func(in *decision.Inputs) { in.Etcd.Annotations = optOut("true") }),
			[]string{"keeps this module away"}},
		"another module opted out": {with(topologytest.HA, 5, func(in *decision.Inputs) { in.Deployment.Annotations = optOut("ingress") }), nil},
		"External":                 {with(topologytest.External, 0), []string{"External"}},
		"an unknown topology":      {with(topologytest.Unknown, 3, operatorGuard), []string{"has its own guard", "Quantum"}},
		"an earlier operator":      {with(topologytest.HA, 5, stockGuard), []string{`"cluster-etcd-operator" and has the wrong number`, "--force-conflicts"}},
		"a person's replicas":      {with(topologytest.HA, 5, scaled), []string{".spec.replicas", `"oc"`, "--force-conflicts"}},
		"a person's budget": {with(topologytest.HA, 5, func(in *decision.Inputs) { signedOnly(in.Budget, person, maxUnavailableJSON) }),
			[]string{".spec.maxUnavailable", `"oc"`}},
		"a person's minAvailable": {with(topologytest.HA, 5, minAvailable("1"), func(in *decision.Inputs) {
			signedOnly(in.Budget, person, `{"f:spec":{"f:minAvailable":{}}}`)
		}), []string{".spec.minAvailable", `"oc"`}},
		"an object without managedFields": {with(topologytest.HA, 5, func(in *decision.Inputs) { in.Budget.ManagedFields = nil }),
			[]string{".spec.maxUnavailable", `"before-first-apply"`}},
		"a conflicting entry": {with(topologytest.HA, 5, conflictingEntry), []string{".spec.overrides", `"oc"`, "also with --force-conflicts", "remove the entry"}},
		"a conflicting entry without an owner": {with(topologytest.HA, 5, func(in *decision.Inputs) { in.ClusterVersion = version(guardEntry(budget, false)) }),
			[]string{"is owned and stays"}},
		"a list that is one value":   {with(topologytest.HA, 5, wholeList), []string{"one value", "by hand"}},
		"the same with both entries": {with(topologytest.HA, 5, claimOfOthers, wholeList), nil},
		"no ClusterVersion":          {with(topologytest.HA, 5, noVersion), []string{"no ClusterVersion"}},
		"nodes not read":             {with(topologytest.HA, 5, noNodes), []string{"nothing is changed"}},
		"nodes not read on one node": {with(topologytest.SR, 1, noNodes), nil},
		"another container":          {with(topologytest.HA, 5, otherContainer), []string{`"guard"`, "delete it"}},
		"another selector": {with(topologytest.HA, 5, func(in *decision.Inputs) { in.Deployment.Spec.Selector.MatchLabels["k8s-app"] = "x" }),
			[]string{"k8s-app=etcd-quorum-guard"}},
		"no selector": {with(topologytest.HA, 5, func(in *decision.Inputs) { in.Deployment.Spec.Selector = nil }), []string{"k8s-app=etcd-quorum-guard"}},
	} {
		t.Run(name, func(t *testing.T) {
			result, _ := decision.Checks().Run(test.in)
			if (result == nil) != (test.message == nil) {
				t.Fatalf("%v, want something with %q", result, test.message)
			}
			for _, message := range test.message {
				if !strings.Contains(result.Message, message) {
					t.Errorf("%q lacks %q", result.Message, message)
				}
			}
		})
	}
}

func TestCertificateMissing(t *testing.T) {
	for message, changes := range map[string][]change{
		"without the Secret etcd-client in":       {noSecret},
		"without the ConfigMap etcd-ca-bundle in": {noBundle},
		"without the Secret etcd-client and the ConfigMap etcd-ca-bundle in the namespace openshift-etcd": {noSecret, noBundle},
	} {
		d := decision.Decide(with(topologytest.HA, 5, changes...))
		if actionOf(d) != decision.Nothing || d.Result.Reason != decision.ReasonCertificateMissing || !strings.Contains(d.Result.Message, message) {
			t.Errorf("%s %v; want %q", actionOf(d), d.Result, message)
		}
	}
}

// variant is a state of a part of a guard. message is the fault that is reported; empty if it is correct.
type variant struct {
	message string
	apply   change
}

func variants(mode configv1.TopologyMode, n int) [][]variant {
	when := func(wrong bool, message string) string {
		if wrong {
			return message
		}
		return ""
	}
	right := variant{"", func(*decision.Inputs) {}}
	const replicas = "has the wrong number of replicas"
	var counts, selectors []variant
	for _, count := range []struct {
		apply    change
		minReady int // percentages are rounded up
	}{
		{maxUnavailable("0"), n}, {maxUnavailable("1"), n - 1}, {maxUnavailable("2"), n - 2}, {maxUnavailable("x"), 0},
		{maxUnavailable("34%"), map[int]int{2: 1, 3: 1, 4: 2, 5: 3}[n]},
		{minAvailable("2"), 2}, {minAvailable("51%"), map[int]int{2: 2, 3: 2, 4: 3, 5: 3}[n]}, {minAvailable("x"), 0},
	} {
		wrong := count.minReady != n-fixture.MaxEvictions(mode, n)
		counts = append(counts, variant{when(wrong, "has a PodDisruptionBudget that allows the wrong number of evictions"), count.apply})
	}
	expression := func(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k8s-app", Operator: operator, Values: values}}}
	}
	for i, selector := range []*metav1.LabelSelector{
		{MatchLabels: map[string]string{"k8s-app": "etcd-quorum-guard"}}, expression(metav1.LabelSelectorOpIn, "etcd-quorum-guard", "x"), // right
		nil, {}, {MatchLabels: map[string]string{"k8s-app": "etcd"}}, // an empty one selects every pod of the namespace
		expression(metav1.LabelSelectorOpNotIn, "etcd-quorum-guard"), expression("Near", "etcd-quorum-guard"),
	} {
		selectors = append(selectors, variant{when(i > 1, "has a PodDisruptionBudget whose selector does not select its pods"),
			func(in *decision.Inputs) { in.Budget.Spec.Selector = selector }})
	}
	return [][]variant{
		{right, {"has a Deployment that is being deleted", deletedDeployment}},
		{right, {replicas, func(in *decision.Inputs) { *in.Deployment.Spec.Replicas-- }},
			{replicas, func(in *decision.Inputs) { *in.Deployment.Spec.Replicas++ }}},
		{right, {when(mode == topologytest.Arbiter, "does not run on the arbiter"), func(in *decision.Inputs) {
			in.Deployment.Spec.Template.Spec.NodeSelector = map[string]string{"node-role.kubernetes.io/master": ""}
		}}},
		{right, {"has no readiness probe", func(in *decision.Inputs) {
			in.Deployment.Spec.Template.Spec.Containers[0].ReadinessProbe = nil
		}}},
		{right, {"has a PodDisruptionBudget that is being deleted", deletedBudget}},
		counts,
		{right, {"has a PodDisruptionBudget that always allows to evict guards that are not ready", alwaysAllow},
			{"", func(in *decision.Inputs) {
				in.Budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.IfHealthyBudget)
			}}},
		selectors,
	}
}

// TestFaults checks that all faults of a guard of an earlier etcd operator are reported, in every combination.
func TestFaults(t *testing.T) {
	right := 0
	for mode, sizes := range map[configv1.TopologyMode][]int{topologytest.HA: {3, 4, 5}, topologytest.Arbiter: {3, 5}, topologytest.Dual: {2, 3}} {
		for _, n := range sizes {
			eachChoice(variants(mode, n), nil, func(chosen []variant) {
				in := with(mode, n)
				signedOnly(in.Deployment, stock, replicasJSON)
				signedOnly(in.Budget, stock, `{"f:spec":{"f:maxUnavailable":{},"f:minAvailable":{}}}`)
				*in.Deployment.Spec.Replicas, in.Deployment.Status.AvailableReplicas = int32(n), int32(n+1)
				if mode == topologytest.Arbiter {
					in.Deployment.Spec.Template.Spec.NodeSelector = nil
				}
				var faults []string
				for _, v := range chosen {
					v.apply(&in)
					if v.message != "" {
						faults = append(faults, v.message)
					}
				}
				wantFaults(t, in, faults...)
				if len(faults) == 0 {
					right++
				}
			})
		}
	}
	if right < 50 {
		t.Errorf("only %d correct guards were tested", right)
	}
	wantFaults(t, with(topologytest.HA, 3, stockGuard, noDeployment), "has no Deployment")
	wantFaults(t, with(topologytest.HA, 3, stockGuard, noBudget), "has no PodDisruptionBudget")
}

func eachChoice(all [][]variant, chosen []variant, f func([]variant)) {
	if len(all) == 0 {
		f(chosen)
		return
	}
	for _, v := range all[0] {
		eachChoice(all[1:], append(chosen, v), f)
	}
}

func wantFaults(t *testing.T, in decision.Inputs, faults ...string) {
	t.Helper()
	state, message := patch.NotNeeded, "is right" // the message of a correct guard
	if n := len(faults); n > 0 {
		state, message = patch.Blocked, faults[n-1]
		if n > 1 {
			message = strings.Join(faults[:n-1], ", ") + " and " + message
		}
		message = `"cluster-etcd-operator" and ` + message + "; check that this operator runs"
	}
	if d := decision.Decide(in); actionOf(d) != decision.Nothing || d.Result.State != state || !strings.Contains(d.Result.Message, message) {
		t.Errorf("%s %s\nwant %s %s", actionOf(d), d.Result, state, message)
	}
}

func TestValidate(t *testing.T) {
	for _, in := range []decision.Inputs{{}, with(topologytest.HA, 3, conditions(), operatorGuard)} {
		if err := in.Validate(); err != nil {
			t.Error(err)
		}
	}
	for message, change := range map[string]change{
		"no topology":                                           func(in *decision.Inputs) { *in.Cluster = topology.Cluster{} },
		"a member in the list has no ID":                        func(in *decision.Inputs) { in.Members[0].ID = 0 },
		"member 1 is listed twice":                              func(in *decision.Inputs) { in.Members[2].ID = 1 },
		"ClusterVersion /x is not /version":                     func(in *decision.Inputs) { in.ClusterVersion.Name = "x" },
		"Etcd /x is not /cluster":                               func(in *decision.Inputs) { conditions()(in); in.Etcd.Name = "x" },
		"Deployment x/etcd-quorum-guard is not openshift-etcd/": func(in *decision.Inputs) { in.Deployment.Namespace = "x" },
		"PodDisruptionBudget openshift-etcd/x is not":           func(in *decision.Inputs) { in.Budget.Name = "x" },
		"is not openshift-etcd/etcd-guard-pdb":                  func(in *decision.Inputs) { operatorGuard(in); in.PodsBudget.Name = "" },
	} {
		if err := with(topologytest.HA, 3, change).Validate(); !errors.Is(err, decision.ErrInputs) || !strings.Contains(err.Error(), message) {
			t.Errorf("%v; want an error with %q", err, message)
		}
	}
}

const deadline = "ProgressDeadlineExceeded"

func newer(in *decision.Inputs) { in.Deployment.Generation++ }

func TestObserve(t *testing.T) {
	for name, test := range map[string]struct {
		in      decision.Inputs
		state   patch.State
		message string
	}{
		"all ready":             {with(topologytest.HA, 3, deploymentStatus(3, 3, 3, "")), patch.InForce, "has a ready guard"},
		"unknown topology":      {with(topologytest.Unknown, 3, deploymentStatus(3, 3, 3, "")), patch.InForce, "Quantum"},
		"claimed":               {with(topologytest.HA, 5, deploymentStatus(3, 3, 3, ""), claimObserved), patch.InForce, "which blocks upgrades"},
		"one not ready":         {with(topologytest.HA, 3, deploymentStatus(3, 3, 2, "")), patch.Progressing, "fewer nodes"},
		"not observed yet":      {with(topologytest.HA, 3, deploymentStatus(3, 3, 3, deadline), newer), patch.Progressing, "Not every guard"},
		"an old pod left":       {with(topologytest.HA, 3, deploymentStatus(3, 2, 3, "")), patch.Progressing, "Not every guard"},
		"no budget":             {with(topologytest.HA, 3, deploymentStatus(3, 3, 3, ""), noBudget), patch.Progressing, "being written"},
		"no Deployment":         {with(topologytest.HA, 3, noDeployment), patch.Progressing, "being written"},
		"deadline exceeded":     {with(topologytest.HA, 3, deploymentStatus(3, 3, 2, deadline)), patch.Failed, "check the health of etcd"},
		"blocked by an old pod": {with(topologytest.HA, 3, deploymentStatus(3, 1, 2, deadline)), patch.Failed, "delete the old pod"},
	} {
		reason := map[patch.State]string{
			patch.InForce: patch.ReasonAsExpected, patch.Progressing: patch.ReasonRollingOut, patch.Failed: decision.ReasonRolloutStuck}[test.state]
		if got := decision.Observe(test.in); got.State != test.state || got.Reason != reason || !strings.Contains(got.Message, test.message) {
			t.Errorf("%s: %s; want %s with %q", name, got, test.state, test.message)
		}
	}
}

// TestHealthOfOtherGuards checks that the health of another writer's guard is reported, and only a stuck rollout is a
// failure.
func TestHealthOfOtherGuards(t *testing.T) {
	pods := func(observed int64, expected, healthy int32) change {
		return func(in *decision.Inputs) {
			operatorGuard(in)
			in.PodsBudget.Generation = 2
			in.PodsBudget.Status = policyv1.PodDisruptionBudgetStatus{
				ObservedGeneration: observed, ExpectedPods: expected, CurrentHealthy: healthy, DesiredHealthy: expected - 1}
		}
	}
	neverObserved := func(in *decision.Inputs) { in.PodsBudget.Generation = 0 }
	const notReady, stuck, silent = "Some guards are not ready", "delete the old pod", ""
	for name, test := range map[string]struct {
		in      decision.Inputs
		state   patch.State
		message string
	}{
		"the release's, ready":                   {with(topologytest.HA, 3, deploymentStatus(3, 3, 3, "")), patch.NotNeeded, silent},
		"the release's, rolling out":             {with(topologytest.HA, 3, deploymentStatus(3, 1, 3, "")), patch.NotNeeded, silent},
		"the release's, one not ready":           {with(topologytest.HA, 3, deploymentStatus(3, 3, 2, "")), patch.NotNeeded, notReady},
		"the release's, not observed":            {with(topologytest.HA, 3, deploymentStatus(3, 3, 2, deadline), newer), patch.NotNeeded, silent},
		"the release's, stuck":                   {with(topologytest.HA, 3, deploymentStatus(3, 1, 2, deadline)), patch.Failed, stuck},
		"the release's, stuck and then finished": {with(topologytest.HA, 3, deploymentStatus(3, 3, 3, deadline)), patch.NotNeeded, silent},
		"an earlier operator's, ready":           {with(topologytest.HA, 3, stockGuard, deploymentStatus(3, 3, 3, "")), patch.NotNeeded, silent},
		"an earlier operator's, one not ready":   {with(topologytest.HA, 3, stockGuard, deploymentStatus(3, 3, 2, "")), patch.NotNeeded, notReady},
		"an earlier operator's, stuck":           {with(topologytest.HA, 3, stockGuard, deploymentStatus(3, 1, 2, deadline)), patch.Failed, stuck},
		"wrong size of an operator's":            {with(topologytest.HA, 5, stockGuard, deploymentStatus(3, 3, 3, "")), patch.Blocked, silent},
		"wrong size of an operator's, not ready": {with(topologytest.HA, 5, stockGuard, deploymentStatus(3, 3, 2, "")), patch.Blocked, notReady},
		"wrong size of an operator's, stuck":     {with(topologytest.HA, 5, stockGuard, deploymentStatus(3, 1, 2, deadline)), patch.Failed, stuck},
		"a person's, stuck":                      {with(topologytest.HA, 5, scaled, deploymentStatus(3, 0, 0, deadline)), patch.Failed, stuck},
		"current operator's, ready":              {with(topologytest.HA, 3, pods(2, 3, 3)), patch.NotNeeded, silent},
		"current operator's, one not ready":      {with(topologytest.HA, 3, pods(2, 3, 2)), patch.NotNeeded, notReady},
		"current operator's, no pods":            {with(topologytest.HA, 3, pods(2, 0, 0)), patch.NotNeeded, notReady},
		"current operator's, not observed":       {with(topologytest.HA, 3, pods(1, 3, 2)), patch.NotNeeded, silent},
		"current operator's, never observed":     {with(topologytest.HA, 3, pods(0, 3, 2), neverObserved), patch.NotNeeded, silent},
		"current operator's, no budget yet":      {with(topologytest.HA, 3, conditions("GuardControllerDegraded")), patch.NotNeeded, silent},
		"current operator's, a Deployment left":  {with(topologytest.HA, 3, pods(2, 3, 3), deploymentStatus(3, 1, 2, deadline)), patch.NotNeeded, silent},
		"External":                               {with(topologytest.External, 0, deploymentStatus(3, 1, 2, deadline)), patch.NotNeeded, silent},
		"opted out":                              {with(topologytest.HA, 3, optOut, deploymentStatus(3, 1, 2, deadline)), patch.OptedOut, silent},
	} {
		t.Run(name, func(t *testing.T) {
			reason := map[patch.State]string{patch.NotNeeded: patch.ReasonNotNeeded, patch.Blocked: patch.ReasonFieldOwnedByOther,
				patch.Failed: decision.ReasonRolloutStuck, patch.OptedOut: patch.ReasonOptedOut}[test.state]
			d := decision.Decide(test.in)
			if actionOf(d) != decision.Nothing || d.Result.State != test.state || d.Result.Reason != reason {
				t.Errorf("%s %s; want %s %s", actionOf(d), d.Result, test.state, reason)
			}
			for _, text := range []string{notReady, stuck} {
				if strings.Contains(d.Result.Message, text) != (text == test.message) {
					t.Errorf("%s; want %q and nothing else", d.Result, test.message)
				}
			}
		})
	}
}
