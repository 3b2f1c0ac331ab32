package approver_test

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/inventory"
	"github.com/solonode/sno/topology"
)

// A node that joins is approved when the inventory awaits it.
func ExampleDecide() {
	list, err := inventory.Load([]byte(`
version: 1
nodes:
- name: worker-0
  window: {notBefore: 2026-11-20T08:00:00Z, notAfter: 2026-11-20T12:00:00Z}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, node := range []string{"worker-0", "worker-1"} {
		request := requestOf(node) // as it was read from the cluster
		parsed, err := approver.Parse(request)
		if err != nil {
			fmt.Println(approver.Unreadable(err).Reason)
			continue
		}
		verdict := approver.Decide(approver.Inputs{Request: parsed, Nodes: noNodes, Approvals: map[string]int{}, Inventory: list, Now: now})
		fmt.Println(verdict.Node, verdict.Approve, verdict.Reason)
		for _, missing := range verdict.Missing() {
			fmt.Println("-", missing.Check+":", missing.Message)
		}
	}
	// Output:
	// worker-0 true ProvenByInventory
	// worker-1 false NotInInventory
	// - Inventory: "worker-1" is not in the inventory
}

// An operator that approves requests asks first whether it may approve those of new nodes by itself.
func ExampleEnabled() {
	for _, mode := range []configv1.TopologyMode{configv1.HighlyAvailableTopologyMode, configv1.SingleReplicaTopologyMode} {
		cluster := topology.Cluster{ControlPlane: topology.ReadingOf(mode), Infrastructure: topology.ReadingOf(mode)}
		for _, machines := range []approver.Presence{approver.Absent, approver.Present, approver.Unknown} {
			enabled, err := approver.Enabled(approver.Host{Cluster: cluster, Machines: machines})
			fmt.Println(mode, enabled, err)
		}
	}
	// Output:
	// HighlyAvailable true <nil>
	// HighlyAvailable true <nil>
	// HighlyAvailable false invalid inputs: Machines are Unknown: read whether there are any
	// SingleReplica false <nil>
	// SingleReplica true <nil>
	// SingleReplica false invalid inputs: Machines are Unknown: read whether there are any
}

// What a person wrote stays, to the byte, and comes back.
func ExampleDisableNodeClient() {
	text := "# of the platform team\nlogLevel: 4 # see the runbook\n"
	disabled, err := approver.DisableNodeClient(text)
	fmt.Print(disabled)
	back, ours := approver.EnableNodeClient(disabled)
	fmt.Println(err, ours, back == text)
	// Output:
	// # of the platform team
	// nodeClientCert: {disabled: true} # sno.solonode.github.io/approver
	// logLevel: 4 # see the runbook
	// <nil> true true
}

// A budget is a value: the state goes in, and comes out.
func ExampleLimit_Take() {
	limit, budget := approver.Limit{Approvals: 1, Window: approver.DefaultLimit.Window}, approver.Budget{}
	for range 2 {
		after, ok, wait := limit.Take(budget, now)
		fmt.Println(ok, wait)
		budget = after
	}
	// Output:
	// true 0s
	// false 10m0s
}
