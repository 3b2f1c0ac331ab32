// SPDX-License-Identifier: Apache-2.0

package catalogue

import "testing"

// A machine-config controller drains whatever is requested; the daemon of a node of a single control plane requests
// none.
func TestDrains(t *testing.T) {
	for id, wants := range map[string]map[bool][]Drain{
		"SNO-MCO-001": {
			true:  {{Acknowledged: true}, {NotRequested: true}},
			false: {{Acknowledged: true, Cordoned: true}, {Acknowledged: true, Evicted: 1}, {}, {NotRequested: true, Cordoned: true}},
		},
		"SNO-MCO-002": {
			true:  {{Acknowledged: true, Cordoned: true, Evicted: 2}},
			false: {{Acknowledged: true, Cordoned: true}, {Cordoned: true, Evicted: 2}, {NotRequested: true, Acknowledged: true, Cordoned: true, Evicted: 2}},
		},
	} {
		check, err := Lookup(id)
		if err != nil {
			t.Fatal(err)
		}
		check.NotApplicable = nil
		for want, drains := range wants {
			for _, drain := range drains {
				drain.Node, drain.Evictable = "node", 2
				in := &Input{State: &State{}, Records: Records{Drains: []Drain{drain}}}
				if fault := faultOf(check, in); (fault == "") != want {
					t.Errorf("%s: %+v must pass: %t, but %q", id, drain, want, fault)
				}
			}
		}
	}
}
