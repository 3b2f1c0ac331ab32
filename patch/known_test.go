package patch_test

import (
	"testing"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
)

func TestTopologyKnown(t *testing.T) {
	if got := patch.TopologyKnown(&topology.Cluster{}); got != nil {
		t.Errorf("a cluster that was read: %v", got)
	}
	got := patch.TopologyKnown(nil)
	if got == nil || got.State != patch.Waiting || got.Reason != patch.ReasonWaitingForInfrastructure || got.Message == "" {
		t.Errorf("no cluster: %v", got)
	}
}
