// SPDX-License-Identifier: Apache-2.0

// Package approver decides whether an operator may approve client certificates of nodes: not where no Machine confirms
// a node's identity (R-APP-1), on a single control-plane node without Machines (R-SNO-12). It is pure. Package requests
// decides on one request, and package decision keeps the stock machine approver from approving.
package approver
