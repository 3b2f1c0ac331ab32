// SPDX-License-Identifier: Apache-2.0

// Package operator is a miniature of a controller-runtime ingress operator.
//
//   - vendored.go contains the two calls by which an operator uses github.com/solonode/sno/ingress.
//   - stock.go has the rules of the stock operator, for comparison (--stock).
//   - router.go, publishing.go and status.go have the Deployment without its topology, how the router is published, and
//     the status.
//   - reconciler.go and write.go reconcile, and write what differs.
//   - revert.go is a fault for tests: an operator that reverts the nodePlacement of others (--revert-placement).
package operator
