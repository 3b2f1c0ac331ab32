// Package approver keeps the stock machine approver from approving client certificates where no Machine confirms a node's identity
// (R-APP-1): on a single control-plane node without Machines (R-SNO-12). It is pure. [Enabled] is for operators that vendor it.
package approver
