// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestCatalogue(t *testing.T) {
	if err := Validate(All()); err != nil {
		t.Error(err)
	}
	if _, err := Lookup("SNO-XYZ-999"); !errors.Is(err, ErrUnknownCheck) {
		t.Errorf("an unknown id: %v", err)
	}
	never := func(*Input) bool { return false }
	good := All()[0]
	for name, change := range map[string]func(*Check){
		"no id":               func(c *Check) { c.ID = "" },
		"another format":      func(c *Check) { c.ID = "SNO-1" },
		"no title":            func(c *Check) { c.Title = "" },
		"no requirement":      func(c *Check) { c.Requirement.Sentence = "" },
		"no negative control": func(c *Check) { c.Controls = []Control{{MustPass: true, Change: never}} },
		"no positive control": func(c *Check) { c.Controls = []Control{{Change: never}} },
		"no Run":              func(c *Check) { c.Run = nil },
		"with an act, without a control on a cluster": func(c *Check) { c.Act = StopAPIServer },
		"disruptive, without an act":                  func(c *Check) { c.Tier = Disruptive },
		"a control on a cluster that must pass": func(c *Check) {
			c.Controls = append(slices.Clone(c.Controls), Control{Name: "x", MustPass: true})
		},
		"a control on a cluster without a name":       func(c *Check) { c.Controls = append(slices.Clone(c.Controls), Control{}) },
		"a control on a cluster as the only negative": func(c *Check) { c.Controls = []Control{{Name: "x"}, {MustPass: true, Change: never}} },
	} {
		bad := good
		change(&bad)
		if Validate([]Check{bad}) == nil {
			t.Errorf("%s: it is valid", name)
		}
	}
	if Validate([]Check{good, good}) == nil {
		t.Error("a duplicate id is valid")
	}
	good.Tier, good.Act, good.Controls = Disruptive, StopAPIServer, append(slices.Clone(good.Controls), Control{Name: "on a cluster"})
	if err := Validate([]Check{good}); err != nil {
		t.Error(err)
	}
}

// TestTitles: titles about an API server contain its namespace.
func TestTitles(t *testing.T) {
	about := 0
	for _, check := range All() {
		rest := strings.ReplaceAll(check.Title, "openshift-oauth-apiserver/apiserver", "")
		if rest != check.Title {
			about++
		}
		if strings.Contains(rest, "apiserver") {
			t.Errorf("%s: %q does not name the namespace of the Deployment apiserver", check.ID, check.Title)
		}
	}
	if about != 5 {
		t.Errorf("%d titles are about the OAuth API server, want 5", about)
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
