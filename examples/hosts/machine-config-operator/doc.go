// SPDX-License-Identifier: Apache-2.0

// Command machine-config-operator is a small stand-in for OpenShift's machine-config operator, and the example of one
// that is built on controller-runtime and vendors github.com/solonode/sno/machineconfig. It assigns the configurations
// of pools to nodes, a few at a time, processes drain requests of nodes, annotates nodes with the topology, sets the
// kubelet's grace periods on a cluster of one node, and reports on
// machineconfigurations.operator.openshift.io/cluster. See README.md.
//
//	machine-config-operator --kubeconfig FILE [--stock] [--drain-policy never|workers] [--shutdown-bound DURATION]
//	  [--shutdown-settle DURATION]
//
// It renders no configurations, and there is no daemon on the nodes.
package main
