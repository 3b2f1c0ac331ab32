// SPDX-License-Identifier: Apache-2.0

// Package decision keeps the stock approver from approving client certificates where no Machine confirms a node's
// identity (R-APP-1). It is pure. [Decide] writes in this order, one object at a time:
//
//	node-client-off   Config, Deployment (restarts the stock approver)
//	off               ClusterVersion, wait for the cluster-version-operator, Deployment (no replicas)
//	release           Config, Deployment (restarts it, or restores its replica), ClusterVersion
package decision
