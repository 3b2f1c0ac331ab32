// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"errors"
	"testing"
)

// A guard that cannot be created is detected without a cluster.
func TestEtcdGuardObjects(t *testing.T) {
	deployment, budget, err := guardObjects()
	if err != nil {
		t.Fatal(err)
	}
	if replicas := deployment.Spec.Replicas; replicas == nil || *replicas != 3 {
		t.Errorf("replicas %v, want 3", replicas)
	}
	if unavailable := budget.Spec.MaxUnavailable; unavailable == nil || unavailable.IntValue() != 1 {
		t.Errorf("maxUnavailable %v, want 1", unavailable)
	}
}

func TestChooseNodes(t *testing.T) {
	nodes := []string{"sno-control-plane", "sno-control-plane2", "sno-control-plane3"}
	for leader, want := range map[string]struct {
		answeredFor, victim string
		err                 error
	}{
		"sno-control-plane_4f2a":  {"sno-control-plane", "sno-control-plane3", nil},
		"sno-control-plane3_4f2a": {"sno-control-plane3", "sno-control-plane2", nil},
		"unknown_4f2a":            {"", "", errGuard},
		"":                        {"", "", errGuard},
	} {
		answeredFor, victim, err := chooseNodes(nodes, leader)
		if answeredFor != want.answeredFor || victim != want.victim || !errors.Is(err, want.err) {
			t.Errorf("%s: %s, %s, %v", leader, answeredFor, victim, err)
		}
	}
}
