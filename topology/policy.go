package topology

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
)

// ErrUnknownPolicy means that Decide was given a name that is not in Policies.
var ErrUnknownPolicy = errors.New("unknown policy")

// Policy names a rule by which an installer turns an Install into topologies.
type Policy string

const (
	// PolicyEnhancement is what the enhancement about workers proposes (R-TOP-5, R-TOP-6, R-ING-5), and the default. For one
	// control-plane replica: SingleReplica wherever no load balancer is provided, however many day-1 workers there are; where
	// one is provided, HighlyAvailable as soon as there is a day-1 worker. The default IngressController is pinned to the
	// control-plane pool whenever the infrastructure topology is SingleReplica.
	//
	// The enhancement says nothing about two and more control-plane replicas. Their topologies are those of
	// PolicyDefaultPlacement; the pinning rule is the enhancement's, so three control-plane nodes with one day-1 worker
	// (SingleReplica by count) have two routers, both on control-plane nodes.
	PolicyEnhancement Policy = "enhancement"

	// PolicyWorkerCount is the rule that shipped first (U-TOP-3), the present state in the enhancement's table. It counts: fewer than three control-plane
	// replicas are SingleReplica; with no day-1 worker the infrastructure topology is that of the control plane, with one
	// SingleReplica, with more HighlyAvailable. Ingress is always in the worker pool.
	PolicyWorkerCount Policy = "worker-count"

	// PolicyDefaultPlacement is what shipped instead of the enhancement (U-TOP-3, U-TOP-6). As PolicyWorkerCount, but two
	// control-plane replicas are DualReplica, or HighlyAvailableArbiter with an arbiter, and without workers their
	// infrastructure topology is HighlyAvailable. Pinning is not derived from a topology: ingresses.config/cluster says
	// defaultPlacement ControlPlane if and only if the platform is None and the control plane SingleReplica, and then the
	// control-plane topology decides the number of routers.
	PolicyDefaultPlacement Policy = "default-placement"
)

// Policies lists the policies, the default first.
func Policies() []Policy {
	return []Policy{PolicyEnhancement, PolicyWorkerCount, PolicyDefaultPlacement}
}

// Decision is what an installer that follows a policy writes, and what it means for ingress. It is a comparable value.
type Decision struct {
	// ControlPlaneTopology is written to the Infrastructure object.
	ControlPlaneTopology configv1.TopologyMode
	// InfrastructureTopology is written to the Infrastructure object: HighlyAvailable or SingleReplica, all the API allows.
	InfrastructureTopology configv1.TopologyMode
	// DefaultPlacement is written to the status of ingresses.config/cluster. Empty unless the policy is
	// PolicyDefaultPlacement, because the field did not exist before.
	DefaultPlacement configv1.DefaultPlacement
	// IngressPool is where the pods of the default IngressController run.
	IngressPool Pool
	// IngressReplicas is their number, by the topology that governs IngressPool.
	IngressReplicas int32
	// MastersSchedulable is written to schedulers.config/cluster. It is true only if there are no day-1 workers, under every
	// policy (R-TOP-1, U-TOP-5); otherwise control-plane nodes keep their NoSchedule taints and are not
	// in the worker pool.
	MastersSchedulable bool
	// LoadBalancer says whether DNS can point straight at a node.
	LoadBalancer LoadBalancer
}

// Decide applies a policy to an install: R-TOP-5, and R-TOP-7, since workers that are added later are no input. An empty
// policy is PolicyEnhancement.
//
// Row 8 of the enhancement's table (cloud, no day-1 worker, workers added later) contradicts itself: its pool is master, yet its
// last column says that ingress floats. Pinned is right: its inputs are those of row 2, so it has the answer of row 2.
//
// Row 4 (cloud, one day-1 worker) is HighlyAvailable because the enhancement assumes, and marks as unchecked, that the
// control-plane node is in the worker pool too. It is not (U-TOP-5): MastersSchedulable is false there. Decide still answers as the table says, so the
// second router stays Pending, and a rollout with required anti-affinity waits, until there is a second worker or somebody
// makes control-plane nodes schedulable.
//
// Errors: ErrUnknownPolicy, ErrNegativeReplicas, ErrNoControlPlane. Decide does not allocate unless it returns one.
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

	cluster := Cluster{
		ControlPlane:   ReadingOf(decision.ControlPlaneTopology),
		Infrastructure: ReadingOf(decision.InfrastructureTopology),
	}
	decision.IngressReplicas = Replicas(cluster.Governing(decision.IngressPool))
	decision.MastersSchedulable = n.workers == 0
	decision.LoadBalancer = loadBalancerFor(decision, n, ProvidesLoadBalancer(install.Platform))
	return decision, nil
}

// enhancementRule is PolicyEnhancement: R-TOP-6 for a single control-plane replica, and the pin of R-ING-5.
func enhancementRule(n counts, cloud bool) Decision {
	decision := Decision{
		ControlPlaneTopology:   splitControlPlane(n),
		InfrastructureTopology: configv1.SingleReplicaTopologyMode,
		IngressPool:            WorkerPool,
	}
	switch {
	case n.controlPlane > 1:
		decision.InfrastructureTopology = splitInfrastructure(n)
	case cloud && n.workers > 0:
		decision.InfrastructureTopology = configv1.HighlyAvailableTopologyMode
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
	return Decision{
		ControlPlaneTopology:   controlPlane,
		InfrastructureTopology: countWorkers(n, controlPlane),
		IngressPool:            WorkerPool,
	}
}

func defaultPlacementRule(n counts, platformNone bool) Decision {
	decision := Decision{
		ControlPlaneTopology:   splitControlPlane(n),
		InfrastructureTopology: splitInfrastructure(n),
		DefaultPlacement:       configv1.DefaultPlacementWorkers,
		IngressPool:            WorkerPool,
	}
	if platformNone && decision.ControlPlaneTopology == configv1.SingleReplicaTopologyMode {
		decision.DefaultPlacement = configv1.DefaultPlacementControlPlane
		decision.IngressPool = ControlPlanePool
	}
	return decision
}

// splitControlPlane is the control-plane topology since two replicas have modes of their own.
func splitControlPlane(n counts) configv1.TopologyMode {
	switch {
	case n.controlPlane == 1:
		return configv1.SingleReplicaTopologyMode
	case n.controlPlane == 2 && n.arbiter > 0:
		return configv1.HighlyAvailableArbiterMode
	case n.controlPlane == 2:
		return configv1.DualReplicaTopologyMode
	default:
		return configv1.HighlyAvailableTopologyMode
	}
}

// splitInfrastructure is the infrastructure topology that goes with splitControlPlane: without workers two control-plane
// nodes are enough for high availability.
func splitInfrastructure(n counts) configv1.TopologyMode {
	if n.controlPlane == 1 {
		return countWorkers(n, configv1.SingleReplicaTopologyMode)
	}
	return countWorkers(n, configv1.HighlyAvailableTopologyMode)
}

func countWorkers(n counts, withoutWorkers configv1.TopologyMode) configv1.TopologyMode {
	switch n.workers {
	case 0:
		return withoutWorkers
	case 1:
		return configv1.SingleReplicaTopologyMode
	default:
		return configv1.HighlyAvailableTopologyMode
	}
}
