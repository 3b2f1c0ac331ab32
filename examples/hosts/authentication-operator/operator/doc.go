// SPDX-License-Identifier: Apache-2.0

// Package operator is a miniature of a controller-runtime authentication operator.
//
//   - vendored.go contains the calls by which an operator uses github.com/solonode/sno/auth.
//   - stock.go has the rules of the stock operator, for comparison (--stock).
//   - nodes.go counts the control-plane nodes that the vendored module asks for.
//   - deployment.go has the Deployments without their topology.
//   - reconciler.go reconciles the Deployments and budgets; wellknown.go and probe.go request the API servers.
//   - status.go and write.go report and write what differs.
package operator
