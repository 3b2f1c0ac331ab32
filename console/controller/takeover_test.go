package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/topology"
)

func topologyOf(controlPlane, infrastructure configv1.TopologyMode) (topology.Cluster, error) {
	i := &configv1.Infrastructure{}
	i.Status.ControlPlaneTopology, i.Status.InfrastructureTopology = controlPlane, infrastructure
	i.Status.PlatformStatus = &configv1.PlatformStatus{Type: configv1.NonePlatformType}
	return topology.FromInfrastructure(i)
}

// TestTakesOverAndGivesBack shows R-CON-2, R-SNO-4 and R-SNO-6: downloads into the shape of one node, back to what the
// release brings, and in again. At rest nothing is written, and releasing leaves spec and owners as if nobody had been
// there.
func TestTakesOverAndGivesBack(t *testing.T) {
	c := installed(t, sr, sr)
	specs, owners := map[string]any{}, map[string]any{}
	for _, name := range []string{console.ConsoleName, console.DownloadsName} {
		d := c.deployment(name)
		specs[name], owners[name] = d.Spec, owned(t, d)
	}
	w := c.walker()
	for _, mode := range []configv1.TopologyMode{sr, ha, sr} {
		c.flip(mode, mode)
		t.Log(mode, w.settle())
		if mode == sr {
			c.requireShaped(console.ConsoleName, console.DownloadsName)
			if err := c.overrides(console.Override()); err != nil {
				t.Error(err)
			}
		} else {
			if err := c.overrides(); err != nil {
				t.Error(err)
			}
			for _, name := range []string{console.ConsoleName, console.DownloadsName} {
				d := c.deployment(name)
				if diff := cmp.Diff(specs[name], any(d.Spec)); diff != "" {
					t.Errorf("%s is not as it was (-want +got):\n%s", name, diff)
				}
				if diff := cmp.Diff(owners[name], any(owned(t, d))); diff != "" {
					t.Errorf("%s: owners are not as they were (-want +got):\n%s", name, diff)
				}
				c.requireNothingOfOurs(d)
			}
			c.requireNothingOfOurs(c.clusterVersion())
		}
		c.server.NoWrites(t, us, func() {
			for range 3 {
				w.step()
				w.operator.act()
			}
		})
	}
}
