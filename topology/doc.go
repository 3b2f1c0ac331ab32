// SPDX-License-Identifier: Apache-2.0

// Package topology reads the topology of a cluster and returns what follows from it, for operators that must also run
// on a single control-plane node. All functions are pure, and decisions do not allocate.
//
// [FromInfrastructure] and [FromUnstructured] read infrastructures.config.openshift.io/cluster into a [Cluster]. Empty
// and unknown modes are HighlyAvailable ([Cluster.Findings]). A missing object is an error: keep the last Cluster.
// Watch the object: the topology can change at run time.
//
// Consequences depend on where pods run, not on the number of nodes. Use all of them together:
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
