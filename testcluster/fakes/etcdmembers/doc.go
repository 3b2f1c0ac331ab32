// SPDX-License-Identifier: Apache-2.0

// Package etcdmembers runs real members of etcd in parallel with an embedded cluster, as many as the cluster that it
// simulates has. The embedded cluster's own etcd, which stores its objects, always has one member.
package etcdmembers
