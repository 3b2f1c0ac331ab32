// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

func hotDecisions() map[string]func() {
	object := infrastructure(sr, ha, configv1.NonePlatformType)
	cluster := clusterOf(external, sr)
	install := topology.Install{Platform: configv1.AWSPlatformType, ControlPlane: count(1), Compute: workers(1, 1)}
	return map[string]func(){
		"FromInfrastructure":       func() { keepBoth(topology.FromInfrastructure(object)) },
		"HighAvailability":         func() { keep(cluster.HighAvailability()) },
		"Governing":                func() { keep(cluster.Governing(topology.ControlPlanePool)) },
		"Replicas":                 func() { keep(topology.Replicas(unknown)) },
		"SpreadRequired":           func() { keep(topology.SpreadRequired(sr)) },
		"RolloutStrategy":          func() { keep(topology.RolloutStrategy(dual, true)) },
		"DisruptionBudget":         func() { keepBoth(topology.DisruptionBudget(ha)) },
		"PlacementOf":              func() { keep(topology.PlacementOf(topology.ControlPlanePool)) },
		"LeaderElection":           func() { keep(topology.LeaderElection(sr)) },
		"Decide/enhancement":       func() { keepBoth(topology.Decide(install, topology.PolicyEnhancement)) },
		"Decide/worker-count":      func() { keepBoth(topology.Decide(install, topology.PolicyWorkerCount)) },
		"Decide/default-placement": func() { keepBoth(topology.Decide(install, topology.PolicyDefaultPlacement)) },
	}
}

//go:noinline
func keep[T any](T) {} // keeps the compiler from removing the call

//go:noinline
func keepBoth[T, U any](T, U) {}

func TestHotDecisionsDoNotAllocate(t *testing.T) {
	for name, call := range hotDecisions() {
		if allocations := testing.AllocsPerRun(100, call); allocations > 0 {
			t.Errorf("%s allocates %v times per call, want 0", name, allocations)
		}
	}
}

func BenchmarkHotDecisions(b *testing.B) {
	for name, call := range hotDecisions() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}
