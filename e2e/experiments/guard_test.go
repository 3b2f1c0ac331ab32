package experiments

import (
	"errors"
	"testing"
)

// TestEtcdGuardObjects makes what the experiment applies, so that a guard that cannot be made is seen without a cluster.
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

func TestCast(t *testing.T) {
	nodes := []string{"sno-control-plane", "sno-control-plane2", "sno-control-plane3"}
	for leader, want := range map[string]struct {
		calm, victim string
		err          error
	}{
		"sno-control-plane_4f2a":  {"sno-control-plane", "sno-control-plane3", nil},
		"sno-control-plane3_4f2a": {"sno-control-plane3", "sno-control-plane2", nil},
		"somebody_4f2a":           {"", "", errGuard},
		"":                        {"", "", errGuard},
	} {
		calm, victim, err := cast(nodes, leader)
		if calm != want.calm || victim != want.victim || !errors.Is(err, want.err) {
			t.Errorf("%s: %s, %s, %v", leader, calm, victim, err)
		}
	}
}
