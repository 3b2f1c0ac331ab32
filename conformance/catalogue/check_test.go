// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNames(t *testing.T) {
	check := Check{
		ID: "SNO-ING-004", Title: "The router is pinned", Module: "ingress", Level: Core, Tier: Static, Topologies: []string{"SingleReplica"},
		Requirement: Requirement{ID: "R-EXAMPLE-5", Sentence: "it stays"},
	}
	if got, want := check.Name(), "[sno-conformance] [SNO-ING-004] The router is pinned"; got != want {
		t.Errorf("name %q, want %q", got, want)
	}
	want := []string{"tier:static", "module:ingress", "level:core", "requirement:R-EXAMPLE-5", "topology:SingleReplica"}
	if diff := cmp.Diff(want, check.Labels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	check.Tier, check.Topologies = Disruptive, nil
	for _, label := range []string{"Serial", "Disruptive", "topology:External", "topology:HighlyAvailableArbiter"} {
		if !slices.Contains(check.Labels(), label) {
			t.Errorf("a disruptive check for all topologies has no label %s: %v", label, check.Labels())
		}
	}
}
