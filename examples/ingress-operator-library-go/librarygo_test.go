// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"github.com/openshift/library-go/pkg/config/leaderelection"
	"github.com/openshift/library-go/pkg/operator/status"

	"github.com/solonode/sno/ingress/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
)

// Half of OpenShift's operators have no controller-runtime, so the vendored module must not add it to the program.
func TestNoControllerRuntime(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, "github.com/solonode/sno/ingress") {
		t.Errorf("ingress is not among %d packages", len(packages))
	}
	forbidden := slices.DeleteFunc(packages, func(name string) bool { return !strings.HasPrefix(name, "sigs.k8s.io/controller-runtime") })
	if diff := cmp.Diff([]string{}, forbidden); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// topology has library-go's durations without importing library-go. Only this module may import both and compare them.
func TestLeaderElectionIsLibraryGos(t *testing.T) {
	ordinary := leaderelection.LeaderElectionDefaulting(configv1.LeaderElection{}, "namespace", "name")
	singleNode := leaderelection.LeaderElectionSNOConfig(ordinary)
	for _, test := range []struct {
		mode configv1.TopologyMode
		want configv1.LeaderElection
	}{
		{configv1.SingleReplicaTopologyMode, singleNode},
		{configv1.HighlyAvailableTopologyMode, ordinary},
		{configv1.HighlyAvailableArbiterMode, ordinary},
		{configv1.DualReplicaTopologyMode, ordinary},
		{configv1.ExternalTopologyMode, ordinary},
		{"", ordinary},
		{"Lunar", ordinary},
	} {
		want := topology.LeaderElectionClass{
			LeaseDuration: test.want.LeaseDuration.Duration, RenewDeadline: test.want.RenewDeadline.Duration, RetryPeriod: test.want.RetryPeriod.Duration,
		}
		if diff := cmp.Diff(want, topology.LeaderElection(test.mode)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.mode, diff)
		}
	}
	if ordinary.LeaseDuration == singleNode.LeaseDuration {
		t.Errorf("library-go has one class, %s", ordinary.LeaseDuration.Duration)
	}
}

// library-go's status controller copies conditions into the stock operator's ClusterOperator by the ends of their types.
// No condition of a module changes what it copies, in any State; only this module may import both.
func TestConditionsStayOutOfClusterOperators(t *testing.T) {
	for suffix, healthy := range map[string]operatorv1.ConditionStatus{
		"Degraded": operatorv1.ConditionFalse, "Progressing": operatorv1.ConditionFalse, "EvaluationConditionsDetected": operatorv1.ConditionFalse,
		"Available": operatorv1.ConditionTrue, "Upgradeable": operatorv1.ConditionTrue,
	} {
		union := func(more ...operatorv1.OperatorCondition) operatorv1.OperatorCondition {
			stock := operatorv1.OperatorCondition{Type: "Stock" + suffix, Status: healthy}
			return status.UnionCondition(suffix, healthy, nil, append(more, stock)...)
		}
		alone := union()
		for _, state := range patch.States() {
			for _, persistent := range []bool{false, true} {
				ours := patch.Result{State: state, Reason: "TheReason", Message: "The message"}.Conditions(decision.ConditionPrefix, persistent)
				if diff := cmp.Diff(alone, union(ours...)); len(ours) == 0 || diff != "" {
					t.Errorf("%s, %s, persistent %t (-alone +with %d conditions):\n%s", suffix, state, persistent, len(ours), diff)
				}
			}
		}
		if diff := cmp.Diff(alone, union(operatorv1.OperatorCondition{Type: decision.ConditionPrefix + suffix, Status: operatorv1.ConditionUnknown})); diff == "" {
			t.Errorf("%s: library-go does not read the ends of types", suffix)
		}
	}
}
