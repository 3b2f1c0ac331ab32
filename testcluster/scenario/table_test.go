// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
)

type proposed struct{ Platform, D1W, D2W, PIT, PTP string }

func TestRowsAreThoseOfTheEnhancement(t *testing.T) {
	rows := map[string]proposed{
		"none-sno":               {"None", "0", "0", "SR", "M"},
		"cloud-sno":              {"Cloud", "0", "0", "SR", "M"},
		"none-sno-day1-worker":   {"None", "1", "1", "SR", "M"},
		"cloud-sno-day1-worker":  {"Cloud", "1", "1", "HA", "W"},
		"none-sno-day1-workers":  {"None", "2+", "2+", "SR", "M"},
		"cloud-sno-day1-workers": {"Cloud", "2+", "2+", "HA", "W"},
		"none-sno-day2-workers":  {"None", "0", "1+", "SR", "M"},
		"cloud-sno-day2-workers": {"Cloud", "0", "1+", "SR", "M"},
	}
	platforms := map[configv1.PlatformType]string{configv1.NonePlatformType: "None", configv1.AWSPlatformType: "Cloud"}
	topologies := map[configv1.TopologyMode]string{configv1.SingleReplicaTopologyMode: "SR", configv1.HighlyAvailableTopologyMode: "HA"}
	pools := map[Pool]string{PoolMaster: "M", PoolWorker: "W"}
	seen := map[string]bool{}
	for _, s := range All() {
		if seen[s.Name] {
			t.Errorf("two scenarios are called %s", s.Name)
		}
		seen[s.Name] = true
		if s.Description == "" {
			t.Errorf("%s has no description", s.Name)
		}
		// Every installer makes masters schedulable exactly when there is no day-1 worker.
		if s.Masters > 0 && s.MastersSchedulable != (s.Day1Workers == 0) {
			t.Errorf("%s: masters schedulable is %v with %d day-1 workers", s.Name, s.MastersSchedulable, s.Day1Workers)
		}
		row, ok := rows[s.Name]
		if !ok {
			continue
		}
		if s.Masters != 1 || s.ControlPlaneTopology != configv1.SingleReplicaTopologyMode {
			t.Errorf("%s is not a single control-plane node", s.Name)
		}
		got := proposed{platforms[s.Platform], count(s.Day1Workers, row.D1W), count(s.Day2Workers, row.D2W),
			topologies[s.InfrastructureTopology], pools[s.Pool]}
		if diff := cmp.Diff(row, got); diff != "" {
			t.Errorf("%s (-enhancement +scenario):\n%s", s.Name, diff)
		}
		if want := map[string]int32{"SR": 1, "HA": 2}[row.PIT]; s.Replicas != want {
			t.Errorf("%s has %d replicas, want %d", s.Name, s.Replicas, want)
		}
	}
	for name := range rows {
		if !seen[name] {
			t.Errorf("the enhancement's row %s is missing", name)
		}
	}
	if len(All()) != 13 {
		t.Errorf("%d scenarios, want the 8 rows and 5 baselines", len(All()))
	}
}

// TestOperands compares the hand-written numbers with the nodes of every scenario: the control plane decides, whatever
// the workers are.
func TestOperands(t *testing.T) {
	t.Parallel()
	want := map[configv1.TopologyMode]Operands{
		"SingleReplica":               {Pool: "master", Console: 1, OAuth: 1},
		"HighlyAvailable":             {Pool: "master", Console: 2, OAuth: 3},
		"HighlyAvailableArbiter":      {Pool: "master", Console: 2, OAuth: 2},
		"DualReplica":                 {Pool: "master", Console: 2, OAuth: 2},
		configv1.ExternalTopologyMode: {Pool: "worker", Console: 2, OAuth: 2},
	}
	for _, s := range All() {
		if diff := cmp.Diff(want[s.ControlPlaneTopology], s.Operands); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.Name, diff)
		}
		room := s.Masters
		if s.Operands.Pool == PoolWorker {
			room = s.Day1Workers
		}
		for _, operand := range s.Operands.List() {
			if int(operand.Replicas) > room || operand.Replicas < 1 {
				t.Errorf("%s: %s has %d pods, and there are %d nodes for them", s.Name, operand.Name, operand.Replicas, room)
			}
			if operand.MinAvailable >= operand.Replicas && operand.OneWriter {
				t.Errorf("%s: %s can never be rolled out: one of %d pods must go first", s.Name, operand.Name, operand.Replicas)
			}
		}
	}
}

// count formats n as the enhancement does: as "2+" where the row has that and n is at least 2.
func count(n int, row string) string {
	if least, found := strings.CutSuffix(row, "+"); found && n >= int(least[0]-'0') {
		return row
	}
	return string(rune('0' + n))
}

func TestLookup(t *testing.T) {
	for _, s := range All() {
		if got, err := Lookup(s.Name); err != nil || got.Name != s.Name {
			t.Errorf("Lookup(%q) = %q, %v", s.Name, got.Name, err)
		}
	}
	_, err := Lookup("no-such")
	if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "none-sno-day2-workers") {
		t.Errorf("Lookup of a wrong name: %v, want ErrUnknown and the names", err)
	}
}
