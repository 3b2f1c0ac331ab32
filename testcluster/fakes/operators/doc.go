// Package operators stands in for those of today's operators that no host under examples/hosts plays: the guard of the etcd operator, and the
// drains of the machine-config operator. They do what docs/upstream.md says that these do, with what is wrong about it, and nothing
// more. They run inside the process that starts them, each with an identity of its own.
//
// The stock machine approver is not played beyond its Deployment (package harness). It knows no topology; without Machines it approves neither
// the first client certificate of a node nor the first serving one; and what it does approve then, the renewal of a serving
// certificate, needs a kubelet that can be called (section 6). There is none on an embedded cluster, so it would never approve anything.
package operators
