// Package patch is the vocabulary that every module of sno shares: what a patch is, how it can end, and who is told.
//
// A module decides with pure functions ("what should this object look like on this topology?") and this package gives the
// outcome a name. [Chain] runs the small preconditions that can stop a patch before it is computed. [Result] is the one
// outcome type; its [State] is ordered by severity, and from it follow when to look again ([Result.Requeue]), which
// sub-conditions are shown ([Result.Conditions]), and which event is sent on a transition ([Result.Transition]).
//
// It implements these requirements of docs/requirements.md for all modules: a rollout can end on one node (R-SNO-2), no
// budget forbids every eviction (R-SNO-3), nothing is written at rest (R-SNO-4), no field of a person is taken
// (R-SNO-5), a release restores what was there (R-SNO-6), a change of the topology is followed (R-SNO-7), and nobody is
// fought with (R-SNO-9).
//
// The package and patch/ownership, patch/mustgather are pure: no client, no clock, no environment. What talks to a cluster
// lives in sub-packages of its own, so that an operator built without controller-runtime can vendor the rest:
//
//	patch/ownership   who owns which field, read from metadata.managedFields
//	patch/apply       server-side apply of a patch, dry run, release
//	patch/status      where the sub-conditions are written
//	patch/metrics     the sno_* metrics
//	patch/manager     one controller process: flags, caches, probes, leader election that follows the topology
//	patch/mustgather  objects from the tree that "oc adm must-gather" writes
//	patch/patchtest   golden directories and a real API server for tests
package patch
