// SPDX-License-Identifier: Apache-2.0

// Package fit reports whether the pods of a node that is to be drained certainly fit on other nodes, which R-MCO-2
// leaves open: whether the scheduler can place the replacement of every evicted pod, in any order and on any of the
// feasible nodes.
//
// Pods to place are the replacements of all evicted pods and of those that may lose their node. Take one of them and k
// nodes that are feasible for it now. Another pod to place uses a share of what makes one of the nodes infeasible: its
// request divided by what is free beyond the first pod's request, for the resource where this is most; or 1, if host
// ports or required anti-affinity exclude the first pod (for a wider topology key, on all of the k nodes in that
// domain). It is placed once, so its largest share over its candidate nodes counts. If the shares of all other pods add
// up to less than k, one of the k nodes stays feasible. The pods fit if there are such k nodes for every evicted pod.
//
// This assumes the default scheduler and plugins, no gang scheduling, and no rollout, scaling or new pods meanwhile.
// Pods with other rules do not certainly fit. An emptyDir is lost in every drain and does not matter.
package fit

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// Cluster has all objects of each kind, which are not modified. A nil list was not read.
type Cluster struct {
	Nodes        []corev1.Node
	Pods         []corev1.Pod
	Budgets      []policyv1.PodDisruptionBudget
	ReplicaSets  []appsv1.ReplicaSet
	StatefulSets []appsv1.StatefulSet
}

// Verdict is the result of Check. Reason and Message name no node and no pod.
type Verdict struct {
	Fits    bool
	Reason  string
	Message string
	Detail  string // the pod and the cause, for a log; empty if the pods fit
}

// Reasons of a Verdict. Only with ReasonRoomElsewhere the pods fit.
const (
	ReasonRoomElsewhere         = "RoomElsewhere"
	ReasonNotRead               = "NotRead"
	ReasonPodsWaitForANode      = "PodsWaitForANode"
	ReasonSuccessorUnknown      = "SuccessorUnknown"
	ReasonVolumeTiesPodToNode   = "VolumeTiesPodToNode"
	ReasonSchedulingNotFollowed = "SchedulingNotFollowed"
	ReasonBudgetTooTight        = "BudgetTooTight"
	ReasonNoNodeTakesPod        = "NoNodeTakesPod"
	ReasonOtherOperatingSystem  = "OtherOperatingSystem"
	ReasonNotEnoughRoom         = "NotEnoughRoom"
)

var messages = map[string]string{
	ReasonRoomElsewhere:         "Every evicted pod fits on other nodes, in whatever order they are placed",
	ReasonNotRead:               "Not all objects that decide whether the pods fit on other nodes were read",
	ReasonPodsWaitForANode:      "Pods are already pending, so the cluster may be full",
	ReasonSuccessorUnknown:      "A pod has no controller that replaces it, or it is not known what the replacement needs",
	ReasonVolumeTiesPodToNode:   "A pod has a volume that ties it or its data to the node",
	ReasonSchedulingNotFollowed: "A pod is scheduled by rules that this check does not implement",
	ReasonBudgetTooTight:        "A PodDisruptionBudget permits fewer evictions than there are pods, or several select one pod",
	ReasonNoNodeTakesPod:        "No other node is feasible for one of the pods: by selector, affinity, taints, host ports or size",
	ReasonOtherOperatingSystem:  "A pod may be placed on a node of another operating system, where it cannot run",
	ReasonNotEnoughRoom:         "The other nodes may be full before every pod is placed",
}

func no(reason, format string, args ...any) *Verdict {
	return &Verdict{Reason: reason, Message: messages[reason], Detail: fmt.Sprintf(format, args...)}
}

// Check reports whether all pods that would be evicted from the draining nodes at once certainly fit on the others.
func Check(cluster Cluster, draining ...string) Verdict {
	if cluster.Nodes == nil || cluster.Pods == nil || cluster.Budgets == nil || cluster.ReplicaSets == nil || cluster.StatefulSets == nil {
		return *no(ReasonNotRead, "nodes, pods, budgets, replica sets and stateful sets must all be read")
	}
	s, verdict := newSnapshot(cluster, draining)
	for _, check := range []func() *Verdict{s.checkReplacements, s.checkBudgets, s.checkPlacement} {
		if verdict == nil {
			verdict = check()
		}
	}
	if verdict != nil {
		return *verdict
	}
	return Verdict{Fits: true, Reason: ReasonRoomElsewhere, Message: messages[ReasonRoomElsewhere]}
}
