// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/testcluster/operand"
	"github.com/solonode/sno/testcluster/scenario"
)

// highlyAvailable returns the Deployments after the console module has released them: downloads may be on any node.
func highlyAvailable() []scenario.Operand {
	operands := threeMasters.List()
	operands[1].Pool = scenario.PoolWorker
	return operands
}

const overrideKey = "useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer"

// TestStandalone runs the controllers on a release without topologies: no console and no authentication operator runs,
// downloads is a static manifest of the cluster-version-operator, and the other Deployments are an installer's
// (R-SUITE-8). Fields of the former are taken over in any case, those of the installer only with --force-conflicts.
func TestStandalone(t *testing.T) {
	t.Parallel()
	names := []string{"none-sno", "none-sno-day1-workers"}
	if testing.Short() {
		names = names[:1]
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, framework.Config{Scenario: name, Release: scenario.OldRelease, VersionOperator: true})
			p.install()

			p.controllers(nil, map[framework.Module]string{framework.Console: "FieldOwnedByOther", framework.Auth: "FieldOwnedByOther"})
			want := p.Scenario.Operands.List()
			downloads := want[1:2]
			p.settled(downloads)
			p.overridden()
			p.untouched(want[0], want[2], want[3])
			p.quiet()

			p.controllers([]string{"--force-conflicts"}, map[framework.Module]string{framework.Console: "AsExpected", framework.Auth: "AsExpected"})
			p.disturb(want)
			p.overridden()
			p.quiet()
			if name != "none-sno" {
				return
			}
			p.addMasters()
			p.quiet()
			p.settled(want)

			p.must(p.SetTopology(p.ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode))
			// Console and downloads are released and as before: downloads may be on any node.
			p.settled(highlyAvailable())
			p.expect(map[framework.Module]string{framework.Console: "NotNeeded", framework.Auth: "AsExpected"})
			p.released()
			p.quiet()

			p.must(p.SetTopology(p.ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode))
			p.settled(want)
			p.expect(map[framework.Module]string{framework.Console: "AsExpected", framework.Auth: "AsExpected"})
			p.overridden()
			p.quiet()
			p.settled(want)
		})
	}
}

// TestStandaloneHighlyAvailable is TestStandalone with three control-plane nodes, for which the installer's Deployments
// are right.
func TestStandaloneHighlyAvailable(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute; make proof runs it")
	}
	t.Parallel()
	p := start(t, framework.Config{Scenario: "ha", Release: scenario.OldRelease, VersionOperator: true})
	p.install()
	p.controllers([]string{"--force-conflicts"}, map[framework.Module]string{framework.Console: "NotNeeded", framework.Auth: "AsExpected"})
	// Nothing pins downloads there.
	p.disturb(highlyAvailable())
	p.released()
	p.quiet()
}

// overridden checks what an old release needs on one node: the entry that makes downloads unmanaged, which blocks
// upgrades, and the override of the authentication operator.
func (p *proof) overridden() {
	p.t.Helper()
	version := p.version()
	if len(version.Spec.Overrides) != 1 || version.Spec.Overrides[0].Name != "downloads" || !version.Spec.Overrides[0].Unmanaged {
		p.t.Errorf("%s: spec.overrides is %v, want one entry for downloads", p.Scenario.Name, version.Spec.Overrides)
	}
	if value, _ := p.override(); value != true {
		p.t.Errorf("%s: %s is %v, want true", p.Scenario.Name, overrideKey, value)
	}
}

func (p *proof) released() {
	p.t.Helper()
	if overrides := p.version().Spec.Overrides; len(overrides) > 0 {
		p.t.Errorf("%s: spec.overrides is still %v", p.Scenario.Name, overrides)
	}
	if value, found := p.override(); found {
		p.t.Errorf("%s: %s is still %v", p.Scenario.Name, overrideKey, value)
	}
}

func (p *proof) version() *configv1.ClusterVersion {
	p.t.Helper()
	version := &configv1.ClusterVersion{}
	p.must(p.Cluster.Client().Get(p.ctx, client.ObjectKey{Name: scenario.ClusterVersionName}, version))
	return version
}

func (p *proof) override() (value any, found bool) {
	p.t.Helper()
	authentication, err := p.Object(p.ctx, framework.Auth)
	p.must(err)
	value, found, err = unstructured.NestedFieldNoCopy(authentication.Object, "spec", "unsupportedConfigOverrides", overrideKey)
	p.must(err)
	return value, found
}

func (p *proof) untouched(operands ...scenario.Operand) {
	p.t.Helper()
	for _, o := range operands {
		live, err := operand.Deployment(p.ctx, p.Cluster.Client(), o)
		p.must(err)
		for _, module := range []framework.Module{framework.Console, framework.Auth} {
			owned, err := ownership.Applied(live, module.FieldOwner(), "")
			p.must(err)
			if !owned.Empty() {
				p.t.Errorf("%s: %s owns %s of %s, which the installer made", p.Scenario.Name, module, owned, o.Name)
			}
		}
	}
}
