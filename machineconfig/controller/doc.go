// Package controller carries out the decisions of package machineconfig.
//
// Where a stock machine-config operator is at work, which shows by the ControllerConfig machine-config-controller, it configures graceful
// shutdown and annotates nodes with the topology, and leaves drains to the operator. Everywhere else it handles the drain protocol (U-MCO-1), one
// step per reconciliation: read the node, cordon it, evict, reconcile again. A drain in progress shows on its node, by the request and our cordon,
// so another process continues it.
//
// Only metadata of nodes is cached, and nothing of pods.
package controller
