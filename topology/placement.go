package topology

// Toleration holds the fields of a core/v1 Toleration that a placement needs. The strings are the API's own, so that this
// module does not have to depend on k8s.io/api.
type Toleration struct {
	Key, Operator, Effect string
}

const (
	masterRole       = "node-role.kubernetes.io/master"
	controlPlaneRole = "node-role.kubernetes.io/control-plane"
	workerRole       = "node-role.kubernetes.io/worker"
)

// Placement pins pods to the nodes of a pool. It is a comparable value; the zero Placement pins to workers.
type Placement struct {
	Pool Pool
}

// PlacementOf is the placement for a pool. It does not know the cluster: with an External control plane there is no
// control-plane node to run on, so pass cluster.PoolFor(pool) where that can happen.
func PlacementOf(pool Pool) Placement {
	return Placement{Pool: pool}
}

// NodeSelector is a fresh map of node labels: the master role for ControlPlanePool, the worker role for any other pool. The
// master label is used because it is the one that every release of OpenShift puts on control-plane nodes.
func (p Placement) NodeSelector() map[string]string {
	if p.Pool == ControlPlanePool {
		return map[string]string{masterRole: ""}
	}
	return map[string]string{workerRole: ""}
}

// Tolerations is a fresh slice, in a stable order: for ControlPlanePool the NoSchedule taints of both role keys, nil for any
// other pool. A pinned pod needs them because a control-plane node loses its taint only if there were no day-1 workers; the
// stock router has none and would stay Pending (R-SNO-1, U-ING-5).
func (p Placement) Tolerations() []Toleration {
	if p.Pool != ControlPlanePool {
		return nil
	}
	return []Toleration{
		{Key: masterRole, Operator: "Exists", Effect: "NoSchedule"},
		{Key: controlPlaneRole, Operator: "Exists", Effect: "NoSchedule"},
	}
}
