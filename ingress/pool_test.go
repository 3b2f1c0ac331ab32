// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"errors"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/ingress/internal/fixture"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/topologytest"
)

type poolCase struct {
	controlPlane, infrastructure configv1.TopologyMode
	placement                    configv1.DefaultPlacement
	source                       ingress.PlacementSource

	pool     topology.Pool
	disagree bool
}

func poolCases() []poolCase {
	placements := [4]configv1.DefaultPlacement{"", configv1.DefaultPlacementWorkers, configv1.DefaultPlacementControlPlane, "Elsewhere"}
	// M: control plane, W: workers, by default placement; !: the signals disagree.
	type row struct{ byTopology, byDefault [4]string }
	workers := row{[4]string{"W", "W", "W!", "W"}, [4]string{"W", "W", "M!", "W"}}
	single := row{[4]string{"M", "M!", "M", "M"}, [4]string{"M", "W!", "M", "M"}}
	rows := map[configv1.TopologyMode]row{
		topologytest.HA: workers, topologytest.Arbiter: workers, topologytest.SR: single, topologytest.Dual: workers, topologytest.External: workers, topologytest.Empty: workers, topologytest.Unknown: workers,
	}
	var cases []poolCase
	for infrastructure, row := range rows {
		for i, placement := range placements {
			for source, cell := range map[ingress.PlacementSource]string{
				"": row.byTopology[i], ingress.PlacementFromTopology: row.byTopology[i], ingress.PlacementFromDefaultPlacement: row.byDefault[i],
			} {
				for _, controlPlane := range topologytest.AllModes {
					pool := topology.WorkerPool
					if cell[0] == 'M' && controlPlane != topologytest.External {
						pool = topology.ControlPlanePool
					}
					cases = append(cases, poolCase{controlPlane, infrastructure, placement, source, pool, len(cell) > 1})
				}
			}
		}
	}
	return cases
}

// R-ING-5, R-ING-6: the control plane where the infrastructure topology is SingleReplica, and the workers elsewhere.
func TestRouterPool(t *testing.T) {
	cases := poolCases()
	for _, c := range cases {
		pool, disagree, err := ingress.RouterPool(fixture.ClusterOf(c.controlPlane, c.infrastructure), c.placement, c.source)
		if err != nil || pool != c.pool || disagree != c.disagree {
			t.Errorf("%+v: %s, disagree %v, %v", c, pool, disagree, err)
		}
	}
	if len(cases) != 7*7*4*3 {
		t.Errorf("%d combinations, want all 588", len(cases))
	}
}

func TestRouterPoolErrors(t *testing.T) {
	raw := topology.Cluster{ControlPlane: topology.Reading{Mode: topologytest.Unknown}, Infrastructure: topology.Reading{Mode: topologytest.Unknown}}
	for _, test := range []struct {
		cluster topology.Cluster
		source  ingress.PlacementSource
		want    error
	}{
		{topology.Cluster{}, "", topology.ErrClusterNotRead},
		{raw, ingress.PlacementFromTopology, topology.ErrClusterNotRead},
		{fixture.ClusterOf(topologytest.SR, topologytest.SR), "guess", ingress.ErrPlacement},
		{fixture.ClusterOf(topologytest.SR, topologytest.SR), "Topology", ingress.ErrPlacement},
		{fixture.ClusterOf(topologytest.SR, topologytest.SR), "defaultplacement", ingress.ErrPlacement},
		{fixture.ClusterOf(topologytest.SR, topologytest.SR), " topology", ingress.ErrPlacement},
	} {
		if pool, disagree, err := ingress.RouterPool(test.cluster, "", test.source); pool != "" || disagree || !errors.Is(err, test.want) {
			t.Errorf("%+v, %q: %q, %v, %v; want %v", test.cluster, test.source, pool, disagree, err, test.want)
		}
	}
}
