// SPDX-License-Identifier: Apache-2.0

// Package etcdguard decides about etcd's quorum guard: a pod on the node of every member, which is ready while the
// member is healthy, and a PodDisruptionBudget that allows as many of these nodes to be drained as the quorum
// tolerates. The topology determines the minimum of members (R-ETC-1) and the size of the guard (R-ETC-2). A guard of
// the cluster-version-operator is taken over and released without a moment with two writers or without a guard
// (R-ETC-3, docs/etcdguard-handover.md).
//
// Every function is pure. An etcd operator vendors the package, or package controller carries out package decision.
package etcdguard
