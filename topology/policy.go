// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
)

// ErrUnknownPolicy is returned for a policy that is not in Policies.
var ErrUnknownPolicy = errors.New("unknown policy")

// Policy is the rule by which an installer chooses topologies. The README has a table.
type Policy string

// The policies.
const (
	PolicyEnhancement      Policy = "enhancement"       // what the enhancement about workers proposes (R-TOP-5, R-TOP-6, R-ING-5)
	PolicyWorkerCount      Policy = "worker-count"      // the rule that shipped first (U-TOP-3): ingress is always in the worker pool
	PolicyDefaultPlacement Policy = "default-placement" // the rule that shipped instead of the enhancement (U-TOP-3, U-TOP-6)
)

// Policies returns the policies, the default first.
func Policies() []Policy {
	return []Policy{PolicyEnhancement, PolicyWorkerCount, PolicyDefaultPlacement}
}

// Decision is what an installer writes, and what follows for ingress. It is comparable.
type Decision struct {
	ControlPlaneTopology, InfrastructureTopology configv1.TopologyMode // of the Infrastructure
	// DefaultPlacement is for the status of ingresses.config/cluster; only PolicyDefaultPlacement sets it.
	DefaultPlacement configv1.DefaultPlacement
	IngressPool      Pool  // of the pods of the default IngressController
	IngressReplicas  int32 // of the default IngressController
	// MastersSchedulable is for schedulers.config/cluster: true only without day-1 workers (R-TOP-1, U-TOP-5). If it is
	// false, control-plane nodes keep their NoSchedule taints and are not in the worker pool.
	MastersSchedulable bool
	LoadBalancer       LoadBalancer
}

// Decide applies a policy to an install (R-TOP-5, R-TOP-7). An empty policy is PolicyEnhancement. Errors:
// ErrUnknownPolicy, ErrNegativeReplicas, ErrNoControlPlane.
func Decide(install Install, policy Policy) (Decision, error) {
	n, err := install.counts()
	if err != nil {
		return Decision{}, err
	}

	var decision Decision
	switch policy {
	case PolicyEnhancement, "":
		decision = enhancementRule(n, ProvidesLoadBalancer(install.Platform))
	case PolicyWorkerCount:
		decision = workerCountRule(n)
	case PolicyDefaultPlacement:
		decision = defaultPlacementRule(n, install.Platform == configv1.NonePlatformType || install.Platform == "")
	default:
		return Decision{}, fmt.Errorf("%w %q: use one of %q", ErrUnknownPolicy, policy, Policies())
	}

	cluster := Cluster{ControlPlane: ReadingOf(decision.ControlPlaneTopology), Infrastructure: ReadingOf(decision.InfrastructureTopology)}
	decision.IngressReplicas = Replicas(cluster.Governing(decision.IngressPool))
	decision.MastersSchedulable = n.workers == 0
	decision.LoadBalancer = loadBalancerFor(decision, n, ProvidesLoadBalancer(install.Platform))
	return decision, nil
}

// enhancementRule is R-TOP-6 for one control-plane replica, else defaultPlacementRule. SingleReplica pins ingress
// (R-ING-5).
func enhancementRule(n counts, cloud bool) Decision {
	decision := defaultPlacementRule(n, false)
	decision.DefaultPlacement = ""
	if n.controlPlane == 1 {
		decision.InfrastructureTopology = configv1.SingleReplicaTopologyMode
		if cloud && n.workers > 0 {
			decision.InfrastructureTopology = configv1.HighlyAvailableTopologyMode
		}
	}
	if decision.InfrastructureTopology == configv1.SingleReplicaTopologyMode {
		decision.IngressPool = ControlPlanePool
	}
	return decision
}

func workerCountRule(n counts) Decision {
	controlPlane := configv1.HighlyAvailableTopologyMode
	if n.controlPlane < 3 {
		controlPlane = configv1.SingleReplicaTopologyMode
	}
	return Decision{ControlPlaneTopology: controlPlane, InfrastructureTopology: byWorkers(n, controlPlane), IngressPool: WorkerPool}
}

// defaultPlacementRule places ingress on the control plane only on platform None with one control-plane replica.
func defaultPlacementRule(n counts, platformNone bool) Decision {
	decision := Decision{
		ControlPlaneTopology:   configv1.HighlyAvailableTopologyMode,
		InfrastructureTopology: byWorkers(n, configv1.HighlyAvailableTopologyMode),
		DefaultPlacement:       configv1.DefaultPlacementWorkers,
		IngressPool:            WorkerPool,
	}
	switch {
	case n.controlPlane == 1:
		decision.ControlPlaneTopology = configv1.SingleReplicaTopologyMode
		decision.InfrastructureTopology = byWorkers(n, configv1.SingleReplicaTopologyMode)
		if platformNone {
			decision.DefaultPlacement, decision.IngressPool = configv1.DefaultPlacementControlPlane, ControlPlanePool
		}
	case n.controlPlane >= 2 && n.arbiter > 0:
		decision.ControlPlaneTopology = configv1.HighlyAvailableArbiterMode
	case n.controlPlane == 2:
		decision.ControlPlaneTopology = configv1.DualReplicaTopologyMode
	}
	return decision
}

func byWorkers(n counts, withoutWorkers configv1.TopologyMode) configv1.TopologyMode {
	switch n.workers {
	case 0:
		return withoutWorkers
	case 1:
		return configv1.SingleReplicaTopologyMode
	default:
		return configv1.HighlyAvailableTopologyMode
	}
}
