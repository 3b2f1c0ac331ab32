// Package topology answers two questions for operators that must also run on clusters with a single control-plane node: what kind
// of cluster is this, and what follows from it. Every function is pure, and decisions do not allocate.
//
// [FromInfrastructure] and [FromUnstructured] read infrastructures.config.openshift.io/cluster into a [Cluster]. An empty mode
// means HighlyAvailable, the API's own default. An unknown mode is treated as HighlyAvailable and reported ([Cluster.Findings]). A
// missing object is an error: keep the last Cluster. The topology can change at run time, so watch the object.
//
// Consequences depend on where pods run, never on the number of nodes. Use them together: one replica alone is not enough.
//
//	mode := cluster.Governing(topology.ControlPlanePool)
//	topology.Replicas(mode)                  // 1 or 2
//	topology.SpreadRequired(mode)            // required hostname anti-affinity, or none
//	topology.RolloutStrategy(mode, hostPort) // a rolling update that can finish
//	topology.DisruptionBudget(mode)          // a budget that cannot block a drain, or none
//	topology.LeaderElection(mode)            // lease durations
//	topology.PlacementOf(pool)               // node selector and tolerations together
//
// [Decide] returns what an installer writes, under one of the named [Policies].
package topology
