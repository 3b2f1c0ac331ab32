// Package fit answers the question that R-MCO-2 leaves open: is there room elsewhere for what runs on a node that is to
// be drained?
//
// # What the answer is worth
//
// [Check] says yes only when the scheduler can place the successor of every pod that would be evicted, whatever order it takes them in
// and whichever of the possible nodes it likes best. It does not look for one lucky packing: the scheduler spreads pods by score and
// never moves one to make room for the next.
//
// The argument. Call the pods that look for a node the comers: the successors of all evicted pods, and of all others that may lose
// their node meanwhile, because they are being deleted or because their node is not well. Take one comer and a set of k nodes, each
// of which takes it as things are. Another comer that lands somewhere uses up a part of what would have to be used up before one of the
// k nodes refuses: its request divided by the room that is left beyond the first comer's own request, for the resource where that is most, and
// all of it where the two cannot share the node (host ports, required anti-affinity; of a wider topology key, for every node of the k in
// that domain). It lands once, so it uses up at most the most that it could on any node that might take it. For all k nodes to refuse, all
// others together would have to use up k wholes. If they cannot, one of the k nodes always takes the comer. Some such set for every pod that
// would be evicted is a yes.
//
// # What it assumes
//
// The default scheduler with its default plugins, and a cluster in which nothing else changes: no rollout, no scaling, no new pods, no
// changed nodes. Whatever makes the answer depend on more than that is a doubt, and a doubt is a no: pods that wait for a node
// already, pods that nobody makes again, successors that differ from what runs (a template that was changed since, a stateful set
// that is being updated), volumes that hold a pod or its data to a node, spreading that must hold, claims of devices, other
// schedulers, several budgets over a pod or one that allows fewer evictions than there are pods. An emptyDir is none: its content is lost in
// every drain. Gang scheduling is not known here.
package fit

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// Cluster is what the check looks at: all objects of each kind. nil was not read, which is a doubt. They are only read.
type Cluster struct {
	Nodes        []corev1.Node
	Pods         []corev1.Pod
	Budgets      []policyv1.PodDisruptionBudget
	ReplicaSets  []appsv1.ReplicaSet
	StatefulSets []appsv1.StatefulSet
}

// Verdict is the answer. Reason and Message are stable: they name no node and no pod.
type Verdict struct {
	Fits    bool
	Reason  string
	Message string
	// Detail names the pod that was in the way and what was, for a log; empty for a yes.
	Detail string
}

// Reasons of a Verdict.
const (
	// Room is the yes.
	Room = "RoomElsewhere"
	// NotRead, and all below, are doubts: something is not known.
	NotRead = "NotRead"
	// Unsettled means that pods already wait for a node.
	Unsettled = "PodsWaitForANode"
	// NoSuccessor means that nobody makes a pod again, or nobody knows what its successor looks like.
	NoSuccessor = "SuccessorUnknown"
	// Volumes means that a volume ties a pod or its data to the node.
	Volumes = "VolumeTiesPodToNode"
	// NotFollowed means that a pod is scheduled by rules that this check does not follow.
	NotFollowed = "SchedulingNotFollowed"
	// Budgeted means that a disruption budget would hold up the drain.
	Budgeted = "BudgetTooTight"
	// NoNode means that no other node takes a pod, even while it is the only one to move.
	NoNode = "NoNodeTakesPod"
	// OtherSystem means that a pod may be sent to a node of another operating system: the scheduler does not look at it.
	OtherSystem = "OtherOperatingSystem"
	// NoRoom means that other pods that move at the same time could leave no room for a pod.
	NoRoom = "NotEnoughRoom"
)

func messageOf(reason string) string {
	switch reason {
	case Room:
		return "There is room on other nodes for every pod that is evicted, in whatever order they are placed"
	case NotRead:
		return "Not everything is known that decides whether the pods find room elsewhere"
	case Unsettled:
		return "Pods already wait for a node, so the cluster may be full"
	case NoSuccessor:
		return "A pod is made again by nobody, or it is not known what its successor needs"
	case Volumes:
		return "A volume ties a pod or its data to the node"
	case NotFollowed:
		return "A pod is placed by rules that cannot be followed from outside the scheduler"
	case Budgeted:
		return "A disruption budget allows fewer evictions than there are pods, or several stand over one pod"
	case NoNode:
		return "No other node takes one of the pods: by selector, affinity, taints, host ports or size"
	case OtherSystem:
		return "A pod may be placed on a node of another operating system, where it cannot run"
	case NoRoom:
		return "The other nodes may be full before every pod has found its place"
	}
	return ""
}

func doubt(reason, format string, args ...any) Verdict {
	return Verdict{Reason: reason, Message: messageOf(reason), Detail: fmt.Sprintf(format, args...)}
}

// Check says whether all pods that would be evicted from the leaving nodes, all of them at once, certainly find room on the others.
// The leaving nodes are taken to be cordoned.
func Check(cluster Cluster, leaving ...string) Verdict {
	if cluster.Nodes == nil || cluster.Pods == nil || cluster.Budgets == nil || cluster.ReplicaSets == nil || cluster.StatefulSets == nil {
		return doubt(NotRead, "nodes, pods, budgets, replica sets and stateful sets must all be known")
	}
	s, v := newSurvey(cluster, leaving)
	if v != nil {
		return *v
	}
	for _, check := range []func() *Verdict{s.checkSuccessors, s.checkBudgets, s.checkRoom} {
		if v := check(); v != nil {
			return *v
		}
	}
	return Verdict{Fits: true, Reason: Room, Message: messageOf(Room)}
}
