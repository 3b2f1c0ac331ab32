// SPDX-License-Identifier: Apache-2.0

// Package approver keeps the stock machine approver from approving client certificates where no Machine confirms a
// node's identity (R-APP-1): on a single control-plane node without Machines (R-SNO-12). It is pure. [Enabled] is for
// operators that vendor it.
//
// [Decide] writes in this order, one object at a time:
//
//	node-client-off   Config, Deployment (restarts the stock approver)
//	off               ClusterVersion, wait for the cluster-version-operator, Deployment (no replicas)
//	release           Config, Deployment (restarts it, or restores its replica), ClusterVersion
package approver
