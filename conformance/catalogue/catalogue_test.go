// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"errors"
	"reflect"
	"regexp"
	"testing"
)

var idShape = regexp.MustCompile(`^SNO-[A-Z]{3}-[0-9]{3}$`)

func TestCatalogue(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range All() {
		if !idShape.MatchString(c.ID) || seen[c.ID] {
			t.Errorf("check %q: the id is missing, not unique or does not match %s", c.ID, idShape)
		}
		seen[c.ID] = true
		if c.Title == "" || c.Module == "" || c.Requirement.ID == "" || c.Requirement.Sentence == "" || c.Level == "" || c.Tier == "" || c.Run == nil {
			t.Errorf("check %s: it needs title, module, requirement, level, tier and Run", c.ID)
		}
		if c.Tier == Disruptive && c.Act == "" {
			t.Errorf("check %s: a disruptive check needs an act", c.ID)
		}
		negative, positive, cluster := 0, 0, 0
		for _, control := range c.Controls {
			switch {
			case c.KindOf(control) == KindCluster:
				cluster++
				if control.MustPass || control.Name == "" {
					t.Errorf("check %s: control %q: one of kind %s needs a name and must fail", c.ID, control.Name, KindCluster)
				}
			case control.MustPass:
				positive++
			default:
				negative++
			}
		}
		if negative == 0 || positive == 0 || (c.Act != "") != (cluster > 0) {
			t.Errorf("check %s: it needs a negative and a positive control, and one of kind %s if it evaluates a record", c.ID, KindCluster)
		}
	}
	if _, err := Lookup("SNO-XYZ-999"); !errors.Is(err, ErrUnknownCheck) {
		t.Errorf("an unknown id: %v", err)
	}
}

// TestKinds makes the change of every control on a copy of each cluster, and compares what it changes with its kind.
func TestKinds(t *testing.T) {
	records := func(drained bool) *Input {
		operands := &Disruption{Operands: []OperandDisruption{{Name: "operand"}}}
		in := &Input{Records: Records{
			CSR: &CSROutcome{}, Writes: map[string]string{}, Rollout: operands, Eviction: operands, NodeRestart: operands,
			TopologyChanges: map[string]*TopologyChange{}, Outage: &Outage{Leases: map[string]string{}}, Upgrade: &UpgradeResult{Disruption: *operands},
			Drains: []Drain{{Node: "node", Acknowledged: true, Cordoned: drained, Evictable: 2}},
		}}
		if drained {
			in.Drains[0].Evicted = 2
		}
		for _, check := range All() {
			in.TopologyChanges[check.Module] = &TopologyChange{}
		}
		in.Records = in.Records.copied()
		return in
	}
	for _, name := range fixtures() {
		state := fixture(t, name)
		for _, check := range All() {
			for _, control := range check.Controls {
				kind := check.KindOf(control)
				if kind == KindCluster || check.Excluded(state) != "" {
					continue
				}
				drained := check.ID == "SNO-MCO-002"
				in, unchanged := records(drained), records(drained)
				in.State = state.DeepCopy()
				changed := in.DeepCopy()
				if !control.Change(changed) {
					continue
				}
				if !reflect.DeepEqual(in.State, state.DeepCopy()) || !reflect.DeepEqual(in.Records, unchanged.Records) {
					t.Errorf("%s: %s, %q, changes the original", name, check.ID, control.Name)
				}
				stateChanged := !reflect.DeepEqual(changed.State, in.State.DeepCopy())
				recordChanged := !reflect.DeepEqual(changed.Records, in.Records)
				switch {
				case stateChanged && kind != KindState, recordChanged && kind != KindRecord:
					t.Errorf("%s: %s, %q, is of kind %s, and changes the state: %t, a record: %t", name, check.ID, control.Name, kind, stateChanged, recordChanged)
				case !control.MustPass && !stateChanged && !recordChanged:
					t.Errorf("%s: %s, %q, changes nothing", name, check.ID, control.Name)
				}
			}
		}
	}
}
