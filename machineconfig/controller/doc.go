// SPDX-License-Identifier: Apache-2.0

// Package controller carries out the decisions of package machineconfig. If the ControllerConfig
// machine-config-controller exists, a stock operator drains nodes, and the controller annotates nodes with the topology
// and configures graceful shutdown. Otherwise it handles the drain protocol (U-MCO-1). A drain in progress is recorded
// on its node, by the request and the cordon's field manager, so another process can continue it.
//
// Only metadata of nodes is cached, and no pods.
package controller
