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
	// PoolWorker is every node that runs ordinary workloads, which includes control-plane nodes where those are schedulable.
	PoolWorker Pool = "worker"
	// PoolNone says that there is no default router to place.
	PoolNone Pool = ""
)

// Scenario is a cluster as it was installed, and what is wanted of its router. Counts are numbers of nodes.
type Scenario struct {
	Name        string
	Description string

	Platform configv1.PlatformType
	// Release is the version that was installed. Empty: the constant Release.
	Release string
	// Masters, Arbiters and Day1Workers are there from the installation on; Day2Workers come later, by AddDay2Workers.
	Masters, Arbiters, Day1Workers, Day2Workers int
	// MastersSchedulable says that control-plane nodes are workers too and have no taint; installers do that when there is no day-1 worker.
	MastersSchedulable bool

	// ControlPlaneTopology and InfrastructureTopology are what the installer writes to the status of infrastructures.config.openshift.io/cluster.
	// For the rows of the enhancement's table they are those it proposes, not those of an installer that ships today.
	ControlPlaneTopology, InfrastructureTopology configv1.TopologyMode
	// DefaultPlacement is in the status of ingresses.config.openshift.io/cluster, where no cluster of today has nothing: installers write it since
	// 4.11, and the ingress operator does when it finds none (U-ING-3). The field shipped instead of what the enhancement proposes, so its
	// clusters without a load balancer that have workers have what the operator gave them: they were installed before, and upgraded with
	// their workers. Installed today, they have ControlPlane.
	DefaultPlacement configv1.DefaultPlacement
	// StockReplicas is the spec.replicas that the stock ingress operator creates IngressController/default with, which has no nodePlacement.
	// 0: it creates none.
	StockReplicas int32

	// Pool and Replicas are what the router of the default IngressController must have in the end.
	Pool     Pool
	Replicas int32
	// PendingUntilDay2 is how many of them no node takes before the day-2 workers join.
	PendingUntilDay2 int32

	// Operands is what console, downloads and the OAuth servers must be in the end.
	Operands Operands
}

// ErrUnknown says that there is no scenario of a name.
var ErrUnknown = errors.New("unknown scenario")

// All returns every scenario: the rows of the enhancement in its order, then the baselines.
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
		// R-CON-1, R-AUTH-1: console and downloads run one replica where there is one control-plane node, and so do the OAuth servers. Where their
		// pods run is decided by the control plane, so workers change nothing.
		one = Operands{Pool: PoolMaster, Console: 1, OAuth: 1}
		// Two nodes hold two of each. An arbiter is no control-plane node that would hold another one.
		two = Operands{Pool: PoolMaster, Console: 2, OAuth: 2}
		// The OAuth servers have one pod for each control-plane node.
		three = Operands{Pool: PoolMaster, Console: 2, OAuth: 3}
		// Without a control plane in the cluster the infrastructure topology decides, and workers take the pods.
		workers = Operands{Pool: PoolWorker, Console: 2, OAuth: 2}
	)
	return []Scenario{
		{
			Name: "none-sno", Description: "Single node without a load balancer",
			Platform: none, Masters: 1, MastersSchedulable: true,
			ControlPlaneTopology: single, InfrastructureTopology: single, DefaultPlacement: onControlPlane, StockReplicas: 1,
			Pool: PoolMaster, Replicas: 1,
			Operands: one,
		},
		{
			Name: "cloud-sno", Description: "Single node in a cloud",
			Platform: cloud, Masters: 1, MastersSchedulable: true,
			ControlPlaneTopology: single, InfrastructureTopology: single, DefaultPlacement: onWorkers, StockReplicas: 1,
			Pool: PoolMaster, Replicas: 1,
			Operands: one,
		},
		{
			Name: "none-sno-day1-worker", Description: "Single control-plane node installed with one worker, without a load balancer",
			Platform: none, Masters: 1, Day1Workers: 1, Day2Workers: 1,
			ControlPlaneTopology: single, InfrastructureTopology: single, DefaultPlacement: onWorkers, StockReplicas: 1,
			Pool: PoolMaster, Replicas: 1,
			Operands: one,
		},
		{
			Name: "cloud-sno-day1-worker", Description: "Single control-plane node installed with one worker in a cloud",
			Platform: cloud, Masters: 1, Day1Workers: 1, Day2Workers: 1,
			ControlPlaneTopology: single, InfrastructureTopology: ha, DefaultPlacement: onWorkers, StockReplicas: 2,
			Pool: PoolWorker, Replicas: 2,
			// The enhancement takes the control-plane node for the second worker, and marks that as to be verified. It is not: installers
			// close the control plane to workloads as soon as there is one day-1 worker.
			PendingUntilDay2: 1,
			Operands:         one,
		},
		{
			Name: "none-sno-day1-workers", Description: "Single control-plane node installed with two workers, without a load balancer",
			Platform: none, Masters: 1, Day1Workers: 2, Day2Workers: 2,
			ControlPlaneTopology: single, InfrastructureTopology: single, DefaultPlacement: onWorkers, StockReplicas: 1,
			Pool: PoolMaster, Replicas: 1,
			Operands: one,
		},
		{
			Name: "cloud-sno-day1-workers", Description: "Single control-plane node installed with two workers in a cloud",
			Platform: cloud, Masters: 1, Day1Workers: 2, Day2Workers: 2,
			ControlPlaneTopology: single, InfrastructureTopology: ha, DefaultPlacement: onWorkers, StockReplicas: 2,
			Pool: PoolWorker, Replicas: 2,
			Operands: one,
		},
		{
			Name: "none-sno-day2-workers", Description: "Single node without a load balancer, two workers added later: the floating router",
			Platform: none, Masters: 1, Day2Workers: 2, MastersSchedulable: true,
			ControlPlaneTopology: single, InfrastructureTopology: single, DefaultPlacement: onWorkers, StockReplicas: 1,
			Pool: PoolMaster, Replicas: 1,
			Operands: one,
		},
		{
			// The enhancement's row says both "pool master" and "ingress floats". Pinned is what its rule gives.
			Name: "cloud-sno-day2-workers", Description: "Single node in a cloud, two workers added later",
			Platform: cloud, Masters: 1, Day2Workers: 2, MastersSchedulable: true,
			ControlPlaneTopology: single, InfrastructureTopology: single, DefaultPlacement: onWorkers, StockReplicas: 1,
			Pool: PoolMaster, Replicas: 1,
			Operands: one,
		},
		{
			Name: "ha", Description: "Three control-plane nodes and two workers in a cloud",
			Platform: cloud, Masters: 3, Day1Workers: 2,
			ControlPlaneTopology: ha, InfrastructureTopology: ha, DefaultPlacement: onWorkers, StockReplicas: 2,
			Pool: PoolWorker, Replicas: 2,
			Operands: three,
		},
		{
			Name: "compact", Description: "Three schedulable control-plane nodes in a cloud",
			Platform: cloud, Masters: 3, MastersSchedulable: true,
			ControlPlaneTopology: ha, InfrastructureTopology: ha, DefaultPlacement: onWorkers, StockReplicas: 2,
			Pool: PoolWorker, Replicas: 2,
			Operands: three,
		},
		{
			Name: "arbiter", Description: "Two schedulable control-plane nodes and an arbiter on bare metal",
			Platform: metal, Masters: 2, Arbiters: 1, MastersSchedulable: true,
			ControlPlaneTopology: arbiter, InfrastructureTopology: ha, DefaultPlacement: onWorkers, StockReplicas: 2,
			Pool: PoolWorker, Replicas: 2,
			Operands: two,
		},
		{
			Name: "two-node", Description: "Two schedulable control-plane nodes with fencing on bare metal",
			Platform: metal, Masters: 2, MastersSchedulable: true,
			ControlPlaneTopology: dual, InfrastructureTopology: ha, DefaultPlacement: onWorkers, StockReplicas: 2,
			Pool: PoolWorker, Replicas: 2,
			Operands: two,
		},
		{
			Name: "external", Description: "Two workers whose control plane runs elsewhere",
			Platform: cloud, Day1Workers: 2,
			ControlPlaneTopology: external, InfrastructureTopology: ha, DefaultPlacement: onWorkers,
			Pool:     PoolNone,
			Operands: workers,
		},
	}
}

// Lookup returns the scenario of a name, or ErrUnknown with the names that there are.
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
