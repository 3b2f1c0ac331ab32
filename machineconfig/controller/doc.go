// Package controller answers the requests of nodes to be drained, and has the kubelet of an only node stop its pods gracefully: gather,
// check, decide, act, report. Every decision is made by package machineconfig; what is here talks to the cluster.
//
// # Two ways
//
// Beside a stock machine-config operator only the annotation is written through which its daemons learn the topology: that operator
// drains, and two that drain would disturb each other. It is there when the cluster has a ControllerConfig machine-config-controller,
// which the operator makes and its controller works by. The kind alone, or pools, prove nothing: who has no such operator may install
// MachineConfigPools to say how many nodes may be away, and to pause them.
//
// Everywhere else the drain protocol is carried out: a node asks by an annotation, and hears by another one that it is done
// (U-MCO-1).
//
// # What is remembered
//
// Nothing. A request that is not answered stands on its node, and so does the cordon of a drain that has begun; a process that starts
// anew, or becomes leader, goes on from there. What a drain does next is decided by reading the node again.
//
// # Size
//
// Of nodes only metadata is cached, and of pods nothing. Nodes are read whole when one of them asks to be drained, pods when one is
// drained, those of that node alone.
//
// # Permissions
//
// The markers in rbac.go are the permissions it needs, and all of them; config/rbac/role.yaml is generated from them.
package controller
