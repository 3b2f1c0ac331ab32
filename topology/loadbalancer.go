package topology

// The reasons of LoadBalancer. The texts are stable.
const (
	LoadBalancerPinned   = "One router, pinned to the only control-plane node: DNS can point at that node, also after workers are added."
	LoadBalancerOneNode  = "One router and one node: DNS can point at that node, until workers are added and the router moves."
	LoadBalancerFloats   = "One router that may run on any node of the worker pool: DNS cannot follow it."
	LoadBalancerBalances = "Several routers on several nodes: DNS needs one address in front of them."
)

// LoadBalancer says whether ingress needs something in front of the nodes (a load balancer or a virtual IP), as the last
// columns of the enhancement's table do (R-TOP-9).
type LoadBalancer struct {
	// Needed says so for the cluster as it is installed.
	Needed bool
	// NeededWithWorkers says so once workers are added after installation. Where it differs from Needed, adding a worker
	// breaks ingress that worked: the floating router (R-ING-3).
	NeededWithWorkers bool
	// Provided says that the platform brings a load balancer along, needed or not; see ProvidesLoadBalancer.
	Provided bool
	// Reason is one of the constants above.
	Reason string
}

func loadBalancerFor(decision Decision, n counts, provided bool) LoadBalancer {
	answer := LoadBalancer{Needed: true, NeededWithWorkers: true, Provided: provided}
	switch {
	case decision.IngressReplicas > 1:
		answer.Reason = LoadBalancerBalances
	case decision.IngressPool == ControlPlanePool:
		// One router in this pool means that the control plane is a single replica.
		answer.Needed, answer.NeededWithWorkers, answer.Reason = false, false, LoadBalancerPinned
	case n.controlPlane == 1 && n.workers == 0:
		answer.Needed, answer.Reason = false, LoadBalancerOneNode
	default:
		answer.Reason = LoadBalancerFloats
	}
	return answer
}
