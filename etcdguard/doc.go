// Package etcdguard decides about etcd's quorum guard: a pod on the node of every etcd member that is ready while the member is healthy, and a
// PodDisruptionBudget over these pods that allows as many nodes to be drained at once as quorum tolerates. The topology replaces an override for the
// minimum of three members (R-ETC-1), and gives the guard its size, or turns it off (R-ETC-2). Its ownership is transferred from the
// cluster-version-operator and back without a moment with two writers or without a guard (R-ETC-3, docs/etcdguard-handover.md).
//
// An etcd operator vendors the package: README.md has the calls. Where none does, the controller carries out [Decide], one write at a time.
// Every function is pure.
package etcdguard
