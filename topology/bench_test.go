package topology_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

// hotDecisions are the calls that a reconcile loop makes for every object. Each one must not allocate.
func hotDecisions() []struct {
	name string
	call func()
} {
	object := infrastructure(sr, ha, configv1.NonePlatformType)
	cluster := topology.Cluster{ControlPlane: topology.ReadingOf(external), Infrastructure: topology.ReadingOf(sr)}
	install := topology.Install{Platform: configv1.AWSPlatformType, ControlPlane: count(1), Compute: workers(1, 1)}
	return []struct {
		name string
		call func()
	}{
		{"FromInfrastructure", func() { sink.cluster, sink.err = topology.FromInfrastructure(object) }},
		{"HighAvailability", func() { sink.availability = cluster.HighAvailability() }},
		{"Governing", func() { sink.mode = cluster.Governing(topology.ControlPlanePool) }},
		{"Replicas", func() { sink.replicas = topology.Replicas(unknown) }},
		{"SpreadRequired", func() { sink.yes = topology.SpreadRequired(sr) }},
		{"RolloutStrategy", func() { sink.rollout = topology.RolloutStrategy(dual, true) }},
		{"DisruptionBudget", func() { sink.rollout.MaxUnavailable, sink.yes = topology.DisruptionBudget(ha) }},
		{"PlacementOf", func() { sink.placement = topology.PlacementOf(topology.ControlPlanePool) }},
		{"LeaderElection", func() { sink.class = topology.LeaderElection(sr) }},
		{"Decide/enhancement", func() { sink.decision, sink.err = topology.Decide(install, topology.PolicyEnhancement) }},
		{"Decide/worker-count", func() { sink.decision, sink.err = topology.Decide(install, topology.PolicyWorkerCount) }},
		{"Decide/default-placement", func() { sink.decision, sink.err = topology.Decide(install, topology.PolicyDefaultPlacement) }},
	}
}

// sink keeps results, so that the compiler cannot drop the calls.
var sink struct {
	cluster      topology.Cluster
	err          error
	availability topology.HighAvailabilityMode
	mode         configv1.TopologyMode
	replicas     int32
	yes          bool
	rollout      topology.Rollout
	placement    topology.Placement
	class        topology.LeaderElectionClass
	decision     topology.Decision
}

func TestHotDecisionsDoNotAllocate(t *testing.T) {
	for _, decision := range hotDecisions() {
		if allocations := testing.AllocsPerRun(100, decision.call); allocations > 0 {
			t.Errorf("%s allocates %v times per call, want 0", decision.name, allocations)
		}
	}
}

func BenchmarkHotDecisions(b *testing.B) {
	for _, decision := range hotDecisions() {
		b.Run(decision.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decision.call()
			}
		})
	}
}
