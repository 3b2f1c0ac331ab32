// Package approver says which certificate signing requests of nodes may be approved where no Machine confirms them, and keeps the stock
// approver from approving them on one source's word.
//
// It implements these requirements of docs/requirements.md: approving needs two sources of truth (R-APP-2); in a
// single-node cluster there is no second one inside the cluster, so nothing may be approved automatically (R-APP-1),
// and an outside tool approves instead (R-APP-3), as it does for a node that joins after its first restart (R-APP-4).
// The stock approver's flow is turned off only where there is no second source, and nothing is ever denied (R-SNO-12).
//
// # What may be approved
//
// [Parse] reads a request strictly, [Decide] makes the [Checks] of its flow, and approves when all of them are content. The second source
// is an inventory (package inventory), or, for serving certificates that are renewed, the certificate that the kubelet shows now. The
// files, in the order in which a reviewer wants to read them:
//
//	decide.go          the inputs, the two lists of checks, and what each of them proves
//	requestchecks.go   the checks of both flows
//	clientchecks.go    those of a node that joins
//	servingchecks.go   those of a node that serves
//	parse.go           what is looked at in the first place
//	verdict.go         every reason
//
// [Limit] bounds how many are approved in a time, [Aging] tells when one waits for too long or a certificate was not renewed.
//
// # The stock approver
//
// [Desired] turns its node-client flow off in its own configuration ([DisableNodeClient]), or all of it, and gives everything back
// where Machines confirm who a node is or the control plane has several nodes. An operator that vendors this package asks [Enabled].
//
// Everything here is pure: objects, bytes and a time in, values out.
package approver
