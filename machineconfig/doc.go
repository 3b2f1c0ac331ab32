// SPDX-License-Identifier: Apache-2.0

// Package machineconfig decides how nodes update to a new machine config: how many at once, whether they are drained,
// and how kubelets stop pods. With a SingleReplica control plane nodes are not drained, and the kubelet shuts down
// gracefully (R-MCO-1 to R-MCO-4). The policy [DrainWorkers] is an addition.
//
// Every function is pure. A machine-config operator vendors the package, or package controller carries out these
// decisions and those of package decision.
//
// Each pool may have [MaxUnavailable] nodes unavailable: cordoned, or not fit.Healthy. Unavailable ones are drained
// first. The master and the arbiter pool share a limit, because they share etcd's quorum. Nodes that do not
// exist do not count, as upstream: two of three masters are updated while the third is replaced. Arbiters wait for
// masters. In a paused pool no drain starts. The machine-config operator itself counts a missing Ready as ready, and
// ignores MemoryPressure and PIDPressure.
package machineconfig
