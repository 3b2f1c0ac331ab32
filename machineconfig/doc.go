// Package machineconfig decides how the nodes of a cluster take a new machine config: how many at once, whether they are drained, and how
// their kubelets stop pods. The nodes of a single-node control plane are not drained; its kubelet shuts down gracefully instead. It implements
// R-MCO-1 to R-MCO-4 of docs/requirements.md; the policy [DrainWorkers] goes beyond them.
//
// Every function here is pure. A machine-config operator vendors the package; package controller does the same for a cluster whose operator
// does not.
package machineconfig
