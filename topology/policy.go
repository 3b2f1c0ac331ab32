package topology

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
)

// ErrUnknownPolicy is returned by Decide for a name that is not in Policies.
var ErrUnknownPolicy = errors.New("unknown policy")

// Policy names a rule by which an installer turns an Install into topologies. The README has a table of them.
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

// Decision is what an installer that follows a policy writes, and what it means for ingress. It is comparable.
type Decision struct {
	// ControlPlaneTopology and InfrastructureTopology are written to the Infrastructure object.
	ControlPlaneTopology, InfrastructureTopology configv1.TopologyMode
	// DefaultPlacement is written to the status of ingresses.config/cluster. It is empty with every other policy than PolicyDefaultPlacement.
	DefaultPlacement configv1.DefaultPlacement
	// IngressPool is where the pods of the default IngressController run, IngressReplicas their number.
	IngressPool     Pool
	IngressReplicas int32
	// MastersSchedulable is written to schedulers.config/cluster: true only if there are no day-1 workers (R-TOP-1, U-TOP-5).
	// Otherwise control-plane nodes keep their NoSchedule taints and are not in the worker pool.
	MastersSchedulable bool
	LoadBalancer       LoadBalancer
}

// Decide applies a policy to an install (R-TOP-5, R-TOP-7). An empty policy is PolicyEnhancement.
//
// Errors: ErrUnknownPolicy, ErrNegativeReplicas, ErrNoControlPlane.
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

// enhancementRule pins ingress to the control plane whenever the infrastructure topology is SingleReplica (R-ING-5). A single
// control-plane replica has R-TOP-6's topology; for more of them the topologies are those of PolicyDefaultPlacement.
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

// defaultPlacementRule has modes for two control-plane replicas, and counts them as highly available where there are no workers. The
// default placement is ControlPlane if and only if the platform is None and the control plane SingleReplica.
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
	case n.controlPlane == 2 && n.arbiter > 0:
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
