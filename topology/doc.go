// Package topology answers two questions for operators that must also run on clusters with a single control-plane node:
// what kind of cluster is this, and what follows from it.
//
// # What kind of cluster
//
// [FromInfrastructure] reads infrastructures.config.openshift.io/cluster into a [Cluster]: the control-plane topology, the
// infrastructure topology, the platform, and a list of what was empty, unknown or contradictory ([Cluster.Findings]).
// [FromUnstructured] does the same for an untyped object and also understands status.highAvailabilityMode, a field that
// the documents describe, that prototypes wrote, and that the API never shipped (U-TOP-2).
//
// The rules for odd values are the same everywhere in this package: an empty mode means HighlyAvailable, which is the
// API's own default; an unknown mode is acted on as HighlyAvailable and reported; a missing object is an error, never a
// topology, so that a failed read cannot turn a cluster into a single-replica one. A caller whose read fails keeps the
// Cluster it had. Topology can change while the cluster runs: watch the object and ask again, nothing here is cached.
//
// # What follows
//
// Consequences depend on where pods run, never on how many nodes there are. [Cluster.Governing] picks the topology that
// governs a [Pool], and the functions of a mode take it from there:
//
//	mode := cluster.Governing(topology.ControlPlanePool)
//	topology.Replicas(mode)                  // 1 or 2
//	topology.SpreadRequired(mode)            // required hostname anti-affinity, or none
//	topology.RolloutStrategy(mode, hostPort) // a rolling update that can finish
//	topology.DisruptionBudget(mode)          // a budget that cannot block a drain, or none
//	topology.LeaderElection(mode)            // lease durations
//	topology.PlacementOf(pool)               // node selector and tolerations together
//
// Use them together. One replica alone is not enough: required anti-affinity, host ports, surge and disruption budgets
// can each stop a rollout or a drain on one node.
//
// # What the installer decides
//
// [Decide] computes what an installer writes, from the platform and the replicas of install-config, under one of three
// named policies ([Policies]): the enhancement's table, the worker-count rule that shipped first, and the rule with the
// defaultPlacement field that followed. Workers that are added after installation are no input: they change nothing.
//
// # Requirements
//
// Each function names the rule of docs/requirements.md that it implements, and the fact of docs/upstream.md behind it.
//
// Everything here is pure: no client, no clock, no environment, and no heap allocation in the decisions.
package topology
