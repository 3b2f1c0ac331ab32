// SPDX-License-Identifier: Apache-2.0

// Package operator is a miniature of a controller-runtime machine-config operator.
//
//   - vendored.go contains the calls by which an operator uses github.com/solonode/sno/machineconfig.
//   - stock.go has the decisions of the stock operator, for comparison (--stock).
//   - reconciler.go reconciles the nodes: configurations, annotations and drain requests; drain.go drains.
//   - shutdown.go reconciles the MachineConfig with the kubelet's grace periods.
//   - status.go and write.go report and write what differs.
package operator
