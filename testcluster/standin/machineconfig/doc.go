// SPDX-License-Identifier: Apache-2.0

// Package machineconfig stands in for machine-config-operator: it drains nodes that request it, and writes the topology
// to nodes (U-MCO-1, U-MCO-4). It renders and assigns no configurations.
package machineconfig
