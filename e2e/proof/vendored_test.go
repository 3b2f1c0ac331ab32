// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/testcluster/operand"
	"github.com/solonode/sno/testcluster/scenario"
	patchworkload "github.com/solonode/sno/topology/workload"
)

var (
	// threeMasters are the operands of a cluster that grew to three control-plane nodes, and of its topology.
	threeMasters = scenario.Operands{Pool: scenario.PoolMaster, Console: 2, OAuth: 3}
	vendored     = map[framework.Module][]string{framework.Console: nil, framework.Auth: nil}
	// stock are the same operators without the modules.
	stock = map[framework.Module][]string{framework.Console: {"--stock"}, framework.Auth: {"--stock"}}
	// parallelReasons are the reasons of the controllers next to them. The auth controller owns the shape together with
	// its host.
	parallelReasons = map[framework.Module]string{framework.Console: "NotNeeded", framework.Auth: "AsExpected"}
)

// TestVendored runs the operators that vendor the modules and the controllers in parallel. The controllers have nothing
// to do and must not overwrite each other.
func TestVendored(t *testing.T) {
	t.Parallel()
	type test struct {
		scenario string
		reasons  map[framework.Module]string
	}
	tests := []test{
		{"cloud-sno-day1-workers", parallelReasons},
		{"ha", parallelReasons},
		{"compact", parallelReasons},
		{"arbiter", parallelReasons},
		{"two-node", parallelReasons},
		// Two of the auth module's three objects need nothing because the control plane is external, the third in any case.
		{"external", map[framework.Module]string{framework.Console: "NotNeeded", framework.Auth: "NotNeeded|ExternalControlPlane"}},
	}
	if testing.Short() {
		tests = []test{{"arbiter", parallelReasons}}
	}
	for _, test := range tests {
		t.Run(test.scenario, func(t *testing.T) {
			t.Parallel()
			p := start(t, framework.Config{Scenario: test.scenario, Hosts: vendored})
			// The hosts suffice without controllers.
			p.settled(p.Scenario.Operands.List())
			p.controllers(nil, test.reasons)
			p.disturb(p.Scenario.Operands.List())
			p.quiet()
		})
	}
}

// TestVendoredGrowing replaces the stock operators of a single node by those that vendor the modules, adds two workers,
// adds two control-plane nodes and changes the topology of the workers, which changes nothing, and changes the topology
// of the control plane and back.
func TestVendoredGrowing(t *testing.T) {
	t.Parallel()
	p := start(t, framework.Config{Scenario: "none-sno-day2-workers", Hosts: stock})
	one, three := p.Scenario.Operands.List(), threeMasters.List()
	p.settled(one)
	for module, args := range vendored {
		p.must(p.RunHost(p.ctx, module, args...))
	}
	p.exchanged(one)
	p.controllers(nil, parallelReasons)
	p.disturb(one)
	p.must(p.Scenario.AddDay2Workers(p.ctx, p.Cluster))
	p.disturb(one)
	p.addMasters()
	p.must(p.SetTopology(p.ctx, configv1.SingleReplicaTopologyMode, configv1.HighlyAvailableTopologyMode))
	p.quiet()
	p.settled(one)

	p.must(p.SetTopology(p.ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode))
	p.settled(three)
	p.quiet()
	p.disturb(three)

	p.must(p.SetTopology(p.ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode))
	p.settled(one)
	p.quiet()
	p.settled(one)
}

// exchanged waits until the operators that vendor the modules have replaced the stock ones: on one node the new pod starts
// first, where the stock oauth-openshift stops the old one, and there are no budgets, which the stock console has.
func (p *proof) exchanged(want []scenario.Operand) {
	p.t.Helper()
	for _, o := range want {
		if o.OneWriter {
			continue
		}
		p.must(wait.PollUntilContextTimeout(p.ctx, poll, operand.WaitTimeout, true, func(ctx context.Context) (bool, error) {
			live, err := operand.Deployment(ctx, p.Cluster.Client(), o)
			if err != nil {
				return false, err
			}
			unavailable, surge, ok := patchworkload.Steps(live.Spec.Strategy, 1)
			var budgets policyv1.PodDisruptionBudgetList
			err = p.Cluster.Client().List(ctx, &budgets, client.InNamespace(o.Namespace))
			return ok && unavailable == 0 && surge == 1 && len(budgets.Items) == 0, err //nolint:wrapcheck // of a test
		}))
	}
	p.settled(want)
}
