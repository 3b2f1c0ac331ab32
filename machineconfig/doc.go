// Package machineconfig says how the nodes of a cluster take a new machine config: how many at once, whether they are drained
// before, and how their kubelets stop what runs on them. On a control plane of one node there is nowhere to drain to, so it is not
// drained, and its kubelet stops the workloads gracefully instead.
//
// It implements, from seed 004 (single-node production deployment): the check that there are three control-plane nodes looks at the
// topology instead; the drain before a restart is skipped on a control plane of one node, with added workers too; graceful shutdown of
// the kubelet ends all workloads safely as part of the restart; pausing a machine config pool defers restarts to a maintenance
// window. Policy [DrainWorkers] goes beyond the seed: it finds out what the seed says nobody knows, whether the workers are full.
//
// Two ways to use it. A machine-config operator vendors the package and calls [ExpectedControlPlaneNodes], [MaxUnavailable],
// [MayStart], [DrainRequired] and [ShutdownGracePeriods]. On a cluster whose operator does none of this, a controller
// does what [AnnotateTopology] (beside a stock operator), [MayStart] and [DrainRequired] (where there is none) and [Decide] (the
// graceful shutdown) say.
//
// Every function here is pure: the same inputs give the same bytes, and nothing talks to a cluster.
package machineconfig
