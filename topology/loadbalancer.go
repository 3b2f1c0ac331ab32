// SPDX-License-Identifier: Apache-2.0

package topology

// The reasons of LoadBalancer, which are stable.
const (
	LoadBalancerPinnedRouter   = "One router, pinned to the only control-plane node: DNS can point at that node, also after workers are added."
	LoadBalancerOneNode        = "One router and one node: DNS can point at that node, until workers are added and the router moves."
	LoadBalancerFloatingRouter = "One router that may run on any node of the worker pool: DNS cannot follow it."
	LoadBalancerSeveralRouters = "Several routers on several nodes: DNS needs one address in front of them."
)

// LoadBalancer is whether ingress needs a load balancer or virtual IP, as in the enhancement's table (R-TOP-9).
type LoadBalancer struct {
	// NeededWithWorkers is for workers added later. If it differs from Needed, that breaks ingress (R-ING-3).
	Needed, NeededWithWorkers bool
	Provided                  bool   // by the platform
	Reason                    string // one of the constants
}

func loadBalancerFor(decision Decision, n counts, provided bool) LoadBalancer {
	answer := LoadBalancer{Needed: true, NeededWithWorkers: true, Provided: provided}
	switch {
	case decision.IngressReplicas > 1:
		answer.Reason = LoadBalancerSeveralRouters
	case decision.IngressPool == ControlPlanePool:
		answer.Needed, answer.NeededWithWorkers, answer.Reason = false, false, LoadBalancerPinnedRouter
	case n.controlPlane == 1 && n.workers == 0:
		answer.Needed, answer.Reason = false, LoadBalancerOneNode
	default:
		answer.Reason = LoadBalancerFloatingRouter
	}
	return answer
}
