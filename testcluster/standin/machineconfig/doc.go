// SPDX-License-Identifier: Apache-2.0

// Package machineconfig stands in for machine-config-operator: it gives nodes the configurations of their pools, drains
// nodes that request it, and writes the topology to nodes (U-MCO-1, U-MCO-4). With the vendored module it also writes
// the kubelet's grace periods of a shutdown. It renders no configurations.
package machineconfig
