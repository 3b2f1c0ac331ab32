// SPDX-License-Identifier: Apache-2.0

package topology

// Toleration holds the fields of a core/v1 Toleration that a placement needs: k8s.io/api is no dependency.
type Toleration struct {
	Key, Operator, Effect string
}

const (
	masterRole       = "node-role.kubernetes.io/master"
	controlPlaneRole = "node-role.kubernetes.io/control-plane"
	workerRole       = "node-role.kubernetes.io/worker"
)

// Placement pins pods to a pool. It is comparable; the zero Placement pins to workers.
type Placement struct{ Pool Pool }

// PlacementOf returns the placement for a pool. Pass cluster.PoolFor(pool) if the control plane can be External.
func PlacementOf(pool Pool) Placement { return Placement{Pool: pool} }

// NodeSelector returns a new map with the role: master, which each release has, or worker.
func (p Placement) NodeSelector() map[string]string {
	if p.Pool == ControlPlanePool {
		return map[string]string{masterRole: ""}
	}
	return map[string]string{workerRole: ""}
}

// Tolerations returns a new slice for the taints of both control-plane roles, nil for workers. Without them a pinned
// pod is Pending on a cluster with day-1 workers (R-SNO-1, U-ING-5).
func (p Placement) Tolerations() []Toleration {
	if p.Pool != ControlPlanePool {
		return nil
	}
	return []Toleration{
		{Key: masterRole, Operator: "Exists", Effect: "NoSchedule"},
		{Key: controlPlaneRole, Operator: "Exists", Effect: "NoSchedule"},
	}
}
