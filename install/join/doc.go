// SPDX-License-Identifier: Apache-2.0

// Package join joins the kubelet of one host to its own cluster: it approves the host's request for a client
// certificate, then that for a serving certificate, and no other. approver.Decide decides, with an inventory of this
// host only.
package join
