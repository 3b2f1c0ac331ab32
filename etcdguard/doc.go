// Package etcdguard keeps etcd's quorum from being evicted. A guard runs beside every member of etcd and is ready while that
// member is healthy; a PodDisruptionBudget over the guards lets exactly as many nodes be drained at once as quorum tolerates.
// Where there is one control-plane node, there is no guard and no budget: they could only make that node impossible to drain.
//
// It implements these requirements of docs/requirements.md: the topology takes the place of the override
// useUnsupportedUnsafeNonHANonProductionUnstableEtcd for the minimum of three members (R-ETC-1); the quorum guard has
// the size that the topology asks for, or is off (R-ETC-2); somebody owns it who can change it, and it is handed from
// the cluster-version-operator to somebody else, and back, without a moment in which two write it or none guards
// (R-ETC-3, docs/etcdguard-handover.md).
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
