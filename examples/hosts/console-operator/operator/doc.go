// SPDX-License-Identifier: Apache-2.0

// Package operator is a miniature of a library-go console operator: informers, one factory controller, resourceapply,
// the generations in the operator's status, and events.
//
//   - vendored.go contains the calls by which an operator uses github.com/solonode/sno/console.
//   - stock.go has the rules of the stock operator, for comparison (--stock).
//   - deployment.go has the Deployments without their topology.
//   - sync.go and status.go reconcile and report.
package operator
