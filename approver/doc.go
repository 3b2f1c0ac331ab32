// Package approver keeps the stock machine approver from approving client certificates where no Machine confirms the identity of a
// node (R-APP-1), until there are Machines or several control-plane nodes (R-SNO-12).
// [Enabled] is for operators that vendor this package. It is pure. Package requests decides on single requests.
package approver
