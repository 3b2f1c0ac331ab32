// SPDX-License-Identifier: Apache-2.0

// Package operator is a miniature of the machine approver.
//
//   - vendored.go contains the calls by which an operator uses github.com/solonode/sno/approver.
//   - stock.go has the rules of the stock approver, for comparison (--stock).
//   - reconciler.go decides on all pending requests in one pass.
//   - sources.go reads nodes, Machines, the Infrastructure and the kubelets' certificates.
//   - report.go has the events and conditions.
package operator
