// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
)

// Pool is a machine pool that a router can be pinned to, by the node role of its label.
type Pool string

const (
	// PoolMaster is the control plane.
	PoolMaster Pool = "master"
	// PoolWorker is every node for ordinary workloads, including schedulable control-plane nodes.
	PoolWorker Pool = "worker"
	// PoolNone is set where there is no default router.
	PoolNone Pool = ""
)

// Scenario is a cluster after its installation, and the expectation for its router. Counts are numbers of nodes.
type Scenario struct {
	Name        string
	Description string

	Platform configv1.PlatformType
	// Release is the version that was installed. Empty: the constant Release.
	Release string
	// Masters, Arbiters and Day1Workers are nodes of the installation; AddDay2Workers adds Day2Workers.
	Masters, Arbiters, Day1Workers, Day2Workers int
	// MastersSchedulable is set if control-plane nodes are also workers and have no taint; installers set it without day-1
	// workers.
	MastersSchedulable bool

	// ControlPlaneTopology and InfrastructureTopology are in the status of infrastructures.config.openshift.io/cluster.
	// For the rows of the enhancement's table they are the proposed values, not those of current installers.
	ControlPlaneTopology, InfrastructureTopology configv1.TopologyMode
	// DefaultPlacement is in the status of ingresses.config.openshift.io/cluster. It is never empty today: installers
	// have written it since 4.11, and the ingress operator sets an empty one (U-ING-3).
	DefaultPlacement configv1.DefaultPlacement
	// StockReplicas is the spec.replicas of the IngressController/default that the stock ingress operator creates,
	// without a nodePlacement. 0: it creates none.
	StockReplicas int32

	// Pool and Replicas are the expected final state of the default IngressController's router.
	Pool     Pool
	Replicas int32
	// PendingUntilDay2 is how many of them cannot be scheduled before the day-2 workers join.
	PendingUntilDay2 int32

	Operands Operands
}

// ErrUnknown is returned for an unknown name.
var ErrUnknown = errors.New("unknown scenario")

// All returns the rows of the enhancement in its order, then the baselines.
func All() []Scenario {
	const (
		none  = configv1.NonePlatformType
		cloud = configv1.AWSPlatformType
		metal = configv1.BareMetalPlatformType

		single   = configv1.SingleReplicaTopologyMode
		ha       = configv1.HighlyAvailableTopologyMode
		arbiter  = configv1.HighlyAvailableArbiterMode
		dual     = configv1.DualReplicaTopologyMode
		external = configv1.ExternalTopologyMode

		onWorkers      = configv1.DefaultPlacementWorkers
		onControlPlane = configv1.DefaultPlacementControlPlane
	)
	var (
		// R-CON-1, R-AUTH-1: console, downloads and the OAuth servers run one replica on one control-plane node. The
		// control plane decides where their pods run, so workers change nothing.
		one = Operands{Pool: PoolMaster, Console: 1, OAuth: 1}
		// Two nodes hold two of each. An arbiter is no control-plane node that would hold another one.
		two   = Operands{Pool: PoolMaster, Console: 2, OAuth: 2}
		three = Operands{Pool: PoolMaster, Console: 2, OAuth: 3}
		// Without a control plane in the cluster the infrastructure topology decides, and the pods run on workers.
		workers = Operands{Pool: PoolWorker, Console: 2, OAuth: 2}
	)
	return []Scenario{
		{
			Name: "none-sno", Description: "Single node without a load balancer", Platform: none, Masters: 1, MastersSchedulable: true,
			ControlPlaneTopology: single, InfrastructureTopology: single, DefaultPlacement: onControlPlane, StockReplicas: 1,
			Pool: PoolMaster, Replicas: 1, Operands: one,
		},
		{
			Name: "cloud-sno", Description: "Single node in a cloud", Platform: cloud, Masters: 1, MastersSchedulable: true,
			ControlPlaneTopology: single, InfrastructureTopology: single, DefaultPlacement: onWorkers, StockReplicas: 1,
			Pool: PoolMaster, Replicas: 1, Operands: one,
		},
		{
			Name: "none-sno-day1-worker", Description: "Single control-plane node installed with one worker, without a load balancer",
			Platform: none, Masters: 1, Day1Workers: 1, Day2Workers: 1,
			ControlPlaneTopology: single, InfrastructureTopology: single, DefaultPlacement: onWorkers, StockReplicas: 1,
			Pool: PoolMaster, Replicas: 1, Operands: one,
		},
		// The enhancement counts the control-plane node as the second worker, to be verified. It is none:
		// installers make the control plane unschedulable as soon as there is one day-1 worker.
		{
			Name: "cloud-sno-day1-worker", Description: "Single control-plane node installed with one worker in a cloud",
			Platform: cloud, Masters: 1, Day1Workers: 1, Day2Workers: 1,
			ControlPlaneTopology: single, InfrastructureTopology: ha, DefaultPlacement: onWorkers, StockReplicas: 2,
			Pool: PoolWorker, Replicas: 2, PendingUntilDay2: 1, Operands: one,
		},
		{
			Name: "none-sno-day1-workers", Description: "Single control-plane node installed with two workers, without a load balancer",
			Platform: none, Masters: 1, Day1Workers: 2, Day2Workers: 2,
			ControlPlaneTopology: single, InfrastructureTopology: single, DefaultPlacement: onWorkers, StockReplicas: 1,
			Pool: PoolMaster, Replicas: 1, Operands: one,
		},
		{
			Name: "cloud-sno-day1-workers", Description: "Single control-plane node installed with two workers in a cloud",
			Platform: cloud, Masters: 1, Day1Workers: 2, Day2Workers: 2,
			ControlPlaneTopology: single, InfrastructureTopology: ha, DefaultPlacement: onWorkers, StockReplicas: 2,
			Pool: PoolWorker, Replicas: 2, Operands: one,
		},
		{
			Name: "none-sno-day2-workers", Description: "Single node without a load balancer, two workers added later: the floating router",
			Platform: none, Masters: 1, Day2Workers: 2, MastersSchedulable: true,
			ControlPlaneTopology: single, InfrastructureTopology: single, DefaultPlacement: onWorkers, StockReplicas: 1,
			Pool: PoolMaster, Replicas: 1, Operands: one,
		},
		// The enhancement's row has both "pool master" and "ingress floats". Its rule gives pinned.
		{
			Name: "cloud-sno-day2-workers", Description: "Single node in a cloud, two workers added later",
			Platform: cloud, Masters: 1, Day2Workers: 2, MastersSchedulable: true,
			ControlPlaneTopology: single, InfrastructureTopology: single, DefaultPlacement: onWorkers, StockReplicas: 1,
			Pool: PoolMaster, Replicas: 1, Operands: one,
		},
		{
			Name: "ha", Description: "Three control-plane nodes and two workers in a cloud", Platform: cloud, Masters: 3, Day1Workers: 2,
			ControlPlaneTopology: ha, InfrastructureTopology: ha, DefaultPlacement: onWorkers, StockReplicas: 2,
			Pool: PoolWorker, Replicas: 2, Operands: three,
		},
		{
			Name: "compact", Description: "Three schedulable control-plane nodes in a cloud",
			Platform: cloud, Masters: 3, MastersSchedulable: true,
			ControlPlaneTopology: ha, InfrastructureTopology: ha, DefaultPlacement: onWorkers, StockReplicas: 2,
			Pool: PoolWorker, Replicas: 2, Operands: three,
		},
		{
			Name: "arbiter", Description: "Two schedulable control-plane nodes and an arbiter on bare metal",
			Platform: metal, Masters: 2, Arbiters: 1, MastersSchedulable: true,
			ControlPlaneTopology: arbiter, InfrastructureTopology: ha, DefaultPlacement: onWorkers, StockReplicas: 2,
			Pool: PoolWorker, Replicas: 2, Operands: two,
		},
		{
			Name: "two-node", Description: "Two schedulable control-plane nodes with fencing on bare metal",
			Platform: metal, Masters: 2, MastersSchedulable: true,
			ControlPlaneTopology: dual, InfrastructureTopology: ha, DefaultPlacement: onWorkers, StockReplicas: 2,
			Pool: PoolWorker, Replicas: 2, Operands: two,
		},
		{
			Name: "external", Description: "Two workers whose control plane runs elsewhere", Platform: cloud, Day1Workers: 2,
			ControlPlaneTopology: external, InfrastructureTopology: ha, DefaultPlacement: onWorkers,
			Pool: PoolNone, Operands: workers,
		},
	}
}

// Lookup returns the scenario of a name, or ErrUnknown with the existing names.
func Lookup(name string) (Scenario, error) {
	all := All()
	if i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name }); i >= 0 {
		return all[i], nil
	}
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Name
	}
	return Scenario{}, fmt.Errorf("%w %q: choose one of %s", ErrUnknown, name, strings.Join(names, ", "))
}
