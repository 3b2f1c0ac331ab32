package ingress_test

import (
	"errors"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/topology"
)

// defaults are the columns of the table below: what status.defaultPlacement can say.
var defaults = [4]configv1.DefaultPlacement{"", configv1.DefaultPlacementWorkers, configv1.DefaultPlacementControlPlane, "Elsewhere"}

// poolTable says where the router belongs, M for the control plane and W for the workers, by infrastructure topology and, in
// the columns, the default placement, for each of the two sources. An exclamation mark: the two signals disagree.
var poolTable = []struct {
	infrastructure  configv1.TopologyMode
	topology, other [4]string
}{
	{ha, [4]string{"W", "W", "W!", "W"}, [4]string{"W", "W", "M!", "W"}},
	{arbiter, [4]string{"W", "W", "W!", "W"}, [4]string{"W", "W", "M!", "W"}},
	{sr, [4]string{"M", "M!", "M", "M"}, [4]string{"M", "W!", "M", "M"}},
	{dual, [4]string{"W", "W", "W!", "W"}, [4]string{"W", "W", "M!", "W"}},
	{external, [4]string{"W", "W", "W!", "W"}, [4]string{"W", "W", "M!", "W"}},
	{empty, [4]string{"W", "W", "W!", "W"}, [4]string{"W", "W", "M!", "W"}},
	{unknown, [4]string{"W", "W", "W!", "W"}, [4]string{"W", "W", "M!", "W"}},
}

// eachPool visits all 7 x 7 x 4 x 3 combinations with the pool that is right.
func eachPool(visit func(controlPlane, infrastructure configv1.TopologyMode, def configv1.DefaultPlacement, source ingress.PlacementSource, want topology.Pool, disagree bool)) int {
	n := 0
	for _, row := range poolTable {
		for i, def := range defaults {
			for source, cell := range map[ingress.PlacementSource]string{
				"": row.topology[i], ingress.PlacementFromTopology: row.topology[i], ingress.PlacementFromDefaultPlacement: row.other[i],
			} {
				for _, controlPlane := range allModes {
					want := topology.WorkerPool
					// Without control-plane nodes in the cluster there is only one pool.
					if cell[0] == 'M' && controlPlane != external {
						want = topology.ControlPlanePool
					}
					visit(controlPlane, row.infrastructure, def, source, want, len(cell) > 1)
					n++
				}
			}
		}
	}
	return n
}

// TestRouterPool shows R-ING-5 and R-ING-6: the master pool exactly where the infrastructure topology is SingleReplica,
// and the workers elsewhere.
func TestRouterPool(t *testing.T) {
	n := eachPool(func(controlPlane, infrastructure configv1.TopologyMode, def configv1.DefaultPlacement, source ingress.PlacementSource, want topology.Pool, wantDisagree bool) {
		got, disagree, err := ingress.RouterPool(clusterOf(controlPlane, infrastructure), def, source)
		if err != nil || got != want || disagree != wantDisagree {
			t.Errorf("control plane %q, infrastructure %q, default placement %q, --placement=%q: %s, disagree %v, %v; want %s, %v",
				controlPlane, infrastructure, def, source, got, disagree, err, want, wantDisagree)
		}
	})
	if n != 7*7*4*3 {
		t.Errorf("%d combinations visited, want all 588", n)
	}
}

// A Cluster that was not read from an Infrastructure object, and a source that does not exist, have no answer.
func TestRouterPoolErrors(t *testing.T) {
	raw := topology.Cluster{ControlPlane: topology.Reading{Mode: unknown}, Infrastructure: topology.Reading{Mode: unknown}}
	for _, test := range []struct {
		cluster topology.Cluster
		source  ingress.PlacementSource
		want    error
	}{
		{topology.Cluster{}, "", ingress.ErrNoTopology},
		{raw, ingress.PlacementFromTopology, ingress.ErrNoTopology},
		{clusterOf(sr, sr), "guess", ingress.ErrPlacement},
	} {
		if pool, disagree, err := ingress.RouterPool(test.cluster, "", test.source); pool != "" || disagree || !errors.Is(err, test.want) {
			t.Errorf("%+v, %q: %q, %v, %v; want %v", test.cluster, test.source, pool, disagree, err, test.want)
		}
	}
}
