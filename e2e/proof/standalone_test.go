package proof

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/harness"
	"github.com/solonode/sno/e2e/sample"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/testcluster/operand"
	"github.com/solonode/sno/testcluster/scenario"
)

// highlyAvailable is what the Deployments are where the console module gives them back: downloads is on any node then.
func highlyAvailable() []scenario.Operand {
	operands := threeMasters.List()
	operands[1].Pool = scenario.PoolWorker
	return operands
}

const overrideKey = "useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer"

// TestStandalone runs the controllers on a cluster of a release that knows nothing of topologies: no console operator and no
// authentication operator run, downloads is a static manifest of the cluster-version-operator, and the other Deployments are as an installer
// left them, as after an upgrade (R-SUITE-8). What the cluster-version-operator writes is taken over in any case; what the installer wrote is its own until a person says
// otherwise.
func TestStandalone(t *testing.T) {
	t.Parallel()
	for _, name := range sample.Select(t, []string{"none-sno", "none-sno-day1-workers"}, 1) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, harness.Config{Scenario: name, Release: scenario.OldRelease, VersionOperator: true})
			p.install()

			p.controllers(nil, map[harness.Module]string{harness.Console: "FieldOwnedByOther", harness.Auth: "FieldOwnedByOther"})
			want := p.Scenario.Operands.List()
			downloads := want[1:2]
			p.settled(downloads)
			p.overridden()
			p.untouched(want[0], want[2], want[3])
			p.quiet()

			p.controllers([]string{"--force-conflicts"}, map[harness.Module]string{harness.Console: "AsExpected", harness.Auth: "AsExpected"})
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
			// Console and downloads are given back to who made them, and are as they were: downloads on any node.
			p.settled(highlyAvailable())
			p.expect(map[harness.Module]string{harness.Console: "NotNeeded", harness.Auth: "AsExpected"})
			p.givenBack()
			p.quiet()

			p.must(p.SetTopology(p.ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode))
			p.settled(want)
			p.expect(map[harness.Module]string{harness.Console: "AsExpected", harness.Auth: "AsExpected"})
			p.overridden()
			p.quiet()
			p.settled(want)
		})
	}
}

// TestStandaloneHighlyAvailable is the same on a cluster with three control-plane nodes, where the installer's Deployments are right.
func TestStandaloneHighlyAvailable(t *testing.T) {
	t.Parallel()
	p := start(t, harness.Config{Scenario: "ha", Release: scenario.OldRelease, VersionOperator: true})
	p.install()
	p.controllers([]string{"--force-conflicts"}, map[harness.Module]string{harness.Console: "NotNeeded", harness.Auth: "AsExpected"})
	// Nobody pins downloads there.
	p.disturb(highlyAvailable())
	p.givenBack()
	p.quiet()
}

// overridden holds that what a release of old needs on one node is there: the entry that keeps the cluster-version-operator away from downloads,
// which says that the cluster cannot be upgraded, and the override of the authentication operator.
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

// givenBack holds that neither is there any more.
func (p *proof) givenBack() {
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
	authentication, err := p.Object(p.ctx, harness.Auth)
	p.must(err)
	value, found, err = unstructured.NestedFieldNoCopy(authentication.Object, "spec", "unsupportedConfigOverrides", overrideKey)
	p.must(err)
	return value, found
}

// untouched holds that no module has anything on a Deployment.
func (p *proof) untouched(operands ...scenario.Operand) {
	p.t.Helper()
	for _, o := range operands {
		live, err := operand.Deployment(p.ctx, p.Cluster.Client(), o)
		p.must(err)
		for _, module := range []harness.Module{harness.Console, harness.Auth} {
			owned, err := ownership.Applied(live, module.FieldOwner(), "")
			p.must(err)
			if !owned.Empty() {
				p.t.Errorf("%s: %s owns %s of %s, which the installer made", p.Scenario.Name, module, owned, o.Name)
			}
		}
	}
}
