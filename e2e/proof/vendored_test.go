package proof

import (
	"context"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/solonode/sno/e2e/harness"
	"github.com/solonode/sno/e2e/sample"
	"github.com/solonode/sno/testcluster/operand"
	"github.com/solonode/sno/testcluster/scenario"
)

var (
	// threeMasters is what a cluster has that grew to three control-plane nodes and whose topology says so.
	threeMasters = scenario.Operands{Pool: scenario.PoolMaster, Console: 2, OAuth: 3}
	// vendored are the operators that vendor the modules.
	vendored = map[harness.Module][]string{harness.Console: nil, harness.Auth: nil}
	// stock is how the same operators are today.
	stock = map[harness.Module][]string{harness.Console: {"--stock"}, harness.Auth: {"--stock"}}
	// besideHosts is how the controllers stand beside them. The auth controller owns the shape together with a host that shapes alike.
	besideHosts = map[harness.Module]string{harness.Console: "NotNeeded", harness.Auth: "AsExpected"}
)

// TestVendored runs the operators that vendor the modules, and the controllers beside them, which find nothing to do. They must not fight.
func TestVendored(t *testing.T) {
	t.Parallel()
	type test struct {
		scenario string
		reasons  map[harness.Module]string
	}
	for _, test := range sample.Select(t, []test{
		{"cloud-sno-day1-workers", besideHosts},
		{"ha", besideHosts},
		{"compact", besideHosts},
		{"arbiter", besideHosts},
		{"two-node", besideHosts},
		// Two of the auth module's three objects have nothing to do because the control plane is elsewhere, the third in any case.
		{"external", map[harness.Module]string{harness.Console: "NotNeeded", harness.Auth: "NotNeeded|ExternalControlPlane"}},
	}, 2) {
		t.Run(test.scenario, func(t *testing.T) {
			t.Parallel()
			p := start(t, harness.Config{Scenario: test.scenario, Hosts: vendored})
			// The hosts need nobody beside them.
			p.settled(p.Scenario.Operands.List())
			p.controllers(nil, test.reasons)
			p.disturb(p.Scenario.Operands.List())
			p.quiet()
		})
	}
}

// TestVendoredGrowing is one cluster's life: a single node whose operators are exchanged, today's stock ones for those that vendor the
// modules, two workers that are added, two more control-plane nodes and a topology of the workers, which change nothing, and a topology of
// the control plane that does, and then takes it back.
func TestVendoredGrowing(t *testing.T) {
	t.Parallel()
	p := start(t, harness.Config{Scenario: "none-sno-day2-workers", Hosts: stock})
	one, three := p.Scenario.Operands.List(), threeMasters.List()
	p.settled(one)
	for module, args := range vendored {
		p.must(p.RunHost(p.ctx, module, args...))
	}
	p.exchanged(one)
	p.controllers(nil, besideHosts)
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

// exchanged waits until the operators that vendor the modules have written their shape and its rollout is over. On one node that is the new pod
// first, where today's operators say 25 % or let the old one go first.
func (p *proof) exchanged(want []scenario.Operand) {
	p.t.Helper()
	for _, o := range want {
		if o.OneWriter {
			continue
		}
		p.must(wait.PollUntilContextTimeout(p.ctx, poll, operand.WaitTimeout, true, func(ctx context.Context) (bool, error) {
			live, err := operand.Deployment(ctx, p.Cluster.Client(), o)
			if err != nil || live.Spec.Strategy.RollingUpdate == nil {
				return false, err
			}
			update := live.Spec.Strategy.RollingUpdate
			return *update.MaxUnavailable == intstr.FromInt32(0) && *update.MaxSurge == intstr.FromInt32(1), nil
		}))
	}
	p.settled(want)
}
