// Package machineconfig says how the nodes of a cluster take a new machine config: how many at once, whether they are drained
// before, and how their kubelets stop what runs on them. On a control plane of one node there is nowhere to drain to, so it is not
// drained, and its kubelet stops the workloads gracefully instead.
//
// It implements these requirements of docs/requirements.md: the number of control-plane nodes that is expected follows
// the topology (R-MCO-1); the drain before a restart is skipped on a control plane of one node, with added workers too
// (R-MCO-2); graceful shutdown of the kubelet ends all workloads safely as part of the restart (R-MCO-3); pausing a
// machine config pool defers restarts to a maintenance window, and what waits is reported (R-MCO-4). Policy
// [DrainWorkers] goes beyond them: it finds out whether the workers have room.
//
// Two ways to use it. A machine-config operator vendors the package and calls [ExpectedControlPlaneNodes], [MaxUnavailable],
// [MayStart], [DrainRequired] and [ShutdownGracePeriods]. On a cluster whose operator does none of this, a controller
// does what [AnnotateTopology] (beside a stock operator), [MayStart] and [DrainRequired] (where there is none) and [Decide] (the
// graceful shutdown) say.
//
// Every function here is pure: the same inputs give the same bytes, and nothing talks to a cluster.
package machineconfig
