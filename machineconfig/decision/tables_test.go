// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"slices"
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/machineconfig/internal/fixture"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/topologytest"
)

type choice struct {
	name string
	make func(*decision.Inputs)
}

// TestDecideTable has every combination of the preconditions. The first matching row is expected.
func TestDecideTable(t *testing.T) {
	ownedByPerson := func(managed *[]metav1.ManagedFieldsEntry) {
		*managed = append(*managed, entry(person, `{"f:spec":{"f:logLevel":{}}}`))
	}
	inForce := written("1m30s", "90", "30s")
	factors := [][]choice{
		{{"valid", func(*decision.Inputs) {}}, {"bad policy", func(in *decision.Inputs) { in.Policy = "all" }}, {"unread", func(in *decision.Inputs) { in.Cluster = &topology.Cluster{} }}},
		{{"single", func(*decision.Inputs) {}}, {"no topology", func(in *decision.Inputs) { in.Cluster = nil }}, {"highly available", func(in *decision.Inputs) { in.Cluster = fixture.ClusterOf(topologytest.HA) }}},
		{{"one node", func(*decision.Inputs) {}}, {"nodes not read", func(in *decision.Inputs) { in.Nodes = nil }},
			{"no nodes", func(in *decision.Inputs) { in.Nodes = []corev1.Node{} }}, {"two nodes", func(in *decision.Inputs) { in.Nodes = append(in.Nodes, fixture.Node("w1")) }}},
		{{"none", func(*decision.Inputs) {}}, {"ours", inForce}, {"half", func(in *decision.Inputs) { inForce(in); in.MachineConfig = nil }},
			{"their KubeletConfig", func(in *decision.Inputs) { inForce(in); ownedByPerson(&in.KubeletConfigs[0].ManagedFields) }},
			{"their MachineConfig", func(in *decision.Inputs) { inForce(in); ownedByPerson(&in.MachineConfig.ManagedFields) }}},
		{{"opted in", func(*decision.Inputs) {}}, {"opted out", func(in *decision.Inputs) {
			in.MachineConfiguration = &operatorv1.MachineConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
			optOut(in.MachineConfiguration)
		}}},
		{{"auto", func(*decision.Inputs) {}}, {"on", func(in *decision.Inputs) { in.Graceful = decision.GracefulOn }}, {"off", func(in *decision.Inputs) { in.Graceful = decision.GracefulOff }}},
		{{"settled", func(*decision.Inputs) {}}, {"paused", func(in *decision.Inputs) { fixture.Paused(&in.Pools[1]); updating(&in.Pools[1]) }}, {"updating", inPool(updating)},
			{"no pool", func(in *decision.Inputs) { in.Pools = in.Pools[:1] }}, {"pool without its label", inPool(func(p *mcfgv1.MachineConfigPool) { p.Labels = map[string]string{"other": ""} })}},
		{{"free", func(*decision.Inputs) {}}, {"another for workers", otherConfig("theirs", "worker", "{}")}, {"another for masters", otherConfig("theirs", "master", "{}")}},
		{{"pods", func(*decision.Inputs) {}}, {"pods not read", func(in *decision.Inputs) { in.Pods = nil }}},
	}
	const nothing, release, apply = "nothing", "release", "apply"
	type row struct {
		// when matches if at least one of each list is chosen.
		when           [][]string
		effect, reason string
	}
	rows := []row{
		{[][]string{{"bad policy", "unread"}}, nothing, patch.ReasonInvalid},
		{[][]string{{"no topology"}}, nothing, patch.ReasonWaitingForInfrastructure},
		{[][]string{{"nodes not read"}}, nothing, decision.ReasonWaitingForNodes},
		{[][]string{{"their KubeletConfig", "their MachineConfig"}}, nothing, patch.ReasonFieldOwnedByOther},
		{[][]string{{"opted out"}}, release, patch.ReasonOptedOut},
		{[][]string{{"off"}}, release, patch.ReasonNotNeeded},
		{[][]string{{"auto"}, {"highly available"}}, release, patch.ReasonNotNeeded},
		{[][]string{{"auto"}, {"no nodes", "two nodes"}}, release, patch.ReasonNotNeeded},
		{[][]string{{"no pool", "pool without its label"}}, nothing, patch.ReasonWaitingForObject},
		{[][]string{{"another for masters"}}, release, patch.ReasonFieldOwnedByOther},
		{[][]string{{"pods not read"}}, nothing, decision.ReasonWaitingForNodes},
		{[][]string{{"none", "half"}, {"updating"}}, nothing, decision.ReasonSettling},
		{nil, apply, ""},
	}
	combinations := 1
	for _, choices := range factors {
		combinations *= len(choices)
	}
	for state := range combinations {
		var names []string
		rest, in := state, single()
		invalid := factors[0][rest%len(factors[0])].make
		for i, choices := range factors {
			chosen := choices[rest%len(choices)]
			rest /= len(choices)
			names = append(names, chosen.name)
			if i > 0 {
				chosen.make(&in)
			}
		}
		invalid(&in) // last: it replaces the cluster
		chosen := func(list []string) bool {
			return slices.ContainsFunc(list, func(name string) bool { return slices.Contains(names, name) })
		}
		want := rows[slices.IndexFunc(rows, func(r row) bool {
			return !slices.ContainsFunc(r.when, func(list []string) bool { return !chosen(list) })
		})]
		got := decision.Decide(in)
		effect, reason := nothing, reasonOf(got.Result)
		file, config := chosen([]string{"ours"}), chosen([]string{"ours", "half"})
		switch {
		case got.KubeletConfig.Intent != nil && got.MachineConfig.Intent != nil:
			effect = apply
		case want.effect == release && deletes(got) == config && got.Restarts == config:
			effect = release
		case deletes(got) || got.Restarts:
			effect = "half"
		}
		if effect != want.effect || reason != want.reason || (effect == apply && got.Restarts != !file) {
			t.Fatalf("%q: %s (%s), restarts %t, want %s (%s)", names, effect, reason, got.Restarts, want.effect, want.reason)
		}
	}
}
