// Package etcdguard keeps etcd's quorum from being evicted. A guard runs beside every member of etcd and is ready while that
// member is healthy; a PodDisruptionBudget over the guards lets exactly as many nodes be drained at once as quorum tolerates.
// Where there is one control-plane node, there is no guard and no budget: they could only make that node impossible to drain.
//
// It implements, from seed 004 (single-node production deployment): the etcd operator manages the etcd-quorum-guard, which had a
// static Deployment, so that its replica count can change or the guard can be off; the topology takes the place of the override
// useUnsupportedUnsafeNonHANonProductionUnstableEtcd for the minimum of three members. It answers the seed's open question 2: how
// the guard is handed from the cluster-version-operator to somebody else, and back (docs/etcdguard-handover.md).
//
// Two ways to use it. An etcd operator vendors the package and calls [Deployment] and [DisruptionBudget], or [Pods] and
// [PodsDisruptionBudget] for the shape of today's operators, with what [NewHost] makes of the cluster. It asks [MinimumMembers] and
// [SafeToRemove] before it scales etcd, and [SafeToRestart] before a member or its node restarts. On a cluster whose operator does none of
// this, [Decide] says, one write at a time, what a controller has to do from outside.
//
// The control-plane topology decides, because that is where etcd runs.
//
// Every function here is pure: the same inputs give the same bytes, and nothing talks to a cluster.
package etcdguard
