// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"

	"github.com/solonode/sno/conformance/report"
)

// SNO-MCO-001 and 002: nodes are drained before they restart, except on a single control-plane node.

const notRequested = "not requested: annotation " + NodeTopology + " is SingleReplica"

// NodeTopology is the annotation from which the daemon on a node reads whether it requests drains.
const NodeTopology = "machineconfiguration.openshift.io/controlPlaneTopology"

func notDrained() Check {
	return Check{
		ID: "SNO-MCO-001", Title: "No node is drained before it restarts on a single control-plane node", Module: machineConfig, Level: Core, Tier: Disruptive,
		Requirement: Requirement{"R-MCO-2", "where the high-availability mode is None no node is drained, workers included"},
		Topologies:  []string{"SingleReplica"}, Needs: []string{"nodes without a machine-config daemon"}, NotApplicable: onlySingle, Act: DrainNodes,
		Run: eachDrain(func(d Drain) report.Evidence {
			got, held := "acknowledged, no pod evicted", false
			switch {
			case !d.NotRequested && !d.Acknowledged:
				got = "not acknowledged"
			case d.Cordoned || d.Evicted > 0:
				got = fmt.Sprintf("cordoned: %t, evicted pods: %d", d.Cordoned, d.Evicted)
			case d.NotRequested:
				got, held = notRequested, true
			default:
				held = true
			}
			return found("Node "+d.Node, "requested drain", "acknowledged, no pod evicted; or not requested", got, held)
		}),
		Controls: []Control{
			{Name: "a node is cordoned", Change: onDrain(func(d *Drain) { d.Cordoned = true })},
			{Name: "a pod is evicted", Change: onDrain(func(d *Drain) { d.Evicted = 1 })},
			{Name: "the request is not acknowledged", Change: onDrain(func(d *Drain) { d.NotRequested, d.Acknowledged = false, false })},
			{Name: "one more pod on the node", MustPass: true, Change: onDrain(func(d *Drain) { d.Evictable++ })},
			onCluster("a controller drains every node that requests it"),
		},
	}
}

func wasDrained() Check {
	return Check{
		ID: "SNO-MCO-002", Title: "A node is drained before it restarts where the control plane is highly available", Module: machineConfig, Level: Core, Tier: Disruptive,
		Requirement: Requirement{"R-OPS-2", "a highly available cluster keeps its availability: nodes are drained as before"},
		Topologies:  severalTopologies(), Needs: []string{"nodes without a machine-config daemon"}, NotApplicable: exceptSingle, Act: DrainNodes,
		Run: eachDrain(func(d Drain) report.Evidence {
			want := "acknowledged, cordoned, all pods evicted"
			got := want
			switch {
			case d.NotRequested:
				got = notRequested
			case !d.Acknowledged:
				got = "not acknowledged"
			case !d.Cordoned || d.Evicted != d.Evictable:
				got = fmt.Sprintf("cordoned: %t, evicted pods: %d of %d", d.Cordoned, d.Evicted, d.Evictable)
			}
			return found("Node "+d.Node, "requested drain", want, got, got == want)
		}),
		Controls: []Control{
			{Name: "pods stay on the node", Change: onDrain(func(d *Drain) { d.Evicted, d.Evictable = 0, d.Evictable+1 })},
			{Name: "the node is not cordoned", Change: onDrain(func(d *Drain) { d.Cordoned = false })},
			{Name: "the request is not acknowledged", Change: onDrain(func(d *Drain) { d.Acknowledged = false })},
			{Name: "the daemon requests no drain", Change: onDrain(func(d *Drain) { d.NotRequested = true })},
			{Name: "one more pod, which is evicted", MustPass: true, Change: onDrain(func(d *Drain) { d.Evicted++; d.Evictable++ })},
			onCluster("a controller acknowledges requests and drains no node"),
		},
	}
}

func eachDrain(evaluate func(Drain) report.Evidence) func(*Input) ([]report.Evidence, error) {
	return func(in *Input) ([]report.Evidence, error) {
		var evidence []report.Evidence
		for _, d := range in.Drains {
			evidence = append(evidence, evaluate(d))
		}
		return evidence, nil
	}
}

func onDrain(change func(*Drain)) func(*Input) bool {
	return func(in *Input) bool {
		if len(in.Drains) == 0 {
			return false
		}
		change(&in.Drains[0])
		return true
	}
}
