// SPDX-License-Identifier: Apache-2.0

// Package operand reads and disturbs Deployments on an embedded cluster: a rollout, a drain of a node, a restart of a
// node. It checks the expectations of package scenario and does not depend on the modules under test.
//
// Remove waits until the pod's ReplicaSet has counted it. After an outage of the API server the ReplicaSet controller
// writes some seconds before it watches pods again. If a pod that it created meanwhile is deleted before the
// controller has seen it, the controller keeps waiting for it, and creates no other until another event of the
// ReplicaSet. On a real cluster a pod does not end that soon: the loss of its node is detected first.
package operand
