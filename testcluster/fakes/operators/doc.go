// SPDX-License-Identifier: Apache-2.0

// Package operators has stand-ins for the stock operators that have no host in examples/hosts: the guard of the etcd
// operator, and the drains of the machine-config operator. They do exactly what docs/upstream.md lists, including the
// defects. They run in the process that starts them, each with a separate identity.
//
// The stock machine approver has no stand-in beyond its Deployment (package harness). It reads no topology; without
// Machines it approves neither the first client certificate of a node nor the first serving one; and the renewal of a
// serving certificate, which it does approve then, requires a kubelet that can be called (section 6). An embedded
// cluster has none, so it would never approve anything.
package operators
