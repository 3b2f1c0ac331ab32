// Package machineconfig decides how nodes update to a new machine config: how many at once, whether they are drained, and how
// kubelets stop pods. With a SingleReplica control plane nodes are not drained, and the kubelet shuts down gracefully (R-MCO-1
// to R-MCO-4). The policy [DrainWorkers] is an addition.
//
// Every function is pure. A machine-config operator vendors the package, or package controller carries out the decisions.
package machineconfig
