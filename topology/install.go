package topology

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
)

var (
	// ErrNegativeReplicas means that a machine pool of the install has fewer than 0 replicas. The error that wraps it names
	// the pool.
	ErrNegativeReplicas = errors.New("negative replicas")

	// ErrNoControlPlane means that the control-plane pool has 0 replicas. A cluster whose control plane runs elsewhere is
	// not made from an install-config, so there is nothing to decide for it.
	ErrNoControlPlane = errors.New("no control-plane replicas")
)

// defaultReplicas is what the installer puts where install-config has no replicas.
const defaultReplicas = 3

// edgePool is the compute pool in AWS Local and Wavelength Zones. It is the one whose replicas default to 0.
const edgePool = "edge"

// Install is what an installer knows before the first node exists, in the shape of install-config. Replicas are pointers as
// they are there, because "not set" has its own meaning. There is no field for workers that are added after installation:
// they change nothing that is decided here (R-TOP-7).
type Install struct {
	// Platform is where the cluster is installed. Empty means None.
	Platform configv1.PlatformType
	// ControlPlane is controlPlane.replicas: nil means 3, 0 is ErrNoControlPlane.
	ControlPlane *int64
	// Arbiter is arbiter.replicas: nil means 0. Arbiters matter only beside two control-plane replicas.
	Arbiter *int64
	// Compute are the compute pools. None at all means one pool of 3. The replicas of several pools add up: these are the
	// day-1 workers.
	Compute []ComputePool
}

// ComputePool is one entry of install-config's compute list.
type ComputePool struct {
	// Name is the pool's name, usually "worker". It is used in errors, and a pool named "edge" defaults to 0 replicas.
	Name string
	// Replicas: nil means 3, or 0 for the pool named "edge".
	Replicas *int64
}

// counts is an Install with the installer's defaults applied.
type counts struct {
	controlPlane int64
	arbiter      int64
	workers      int64 // 0, 1 or 2, where 2 stands for 2 and more
}

func (in Install) counts() (counts, error) {
	n := counts{
		controlPlane: replicasOr(in.ControlPlane, defaultReplicas),
		arbiter:      replicasOr(in.Arbiter, 0),
	}
	switch {
	case n.controlPlane < 0:
		return counts{}, fmt.Errorf("install-config pool controlPlane: %w: %d, set at least 1", ErrNegativeReplicas, n.controlPlane)
	case n.controlPlane == 0:
		return counts{}, fmt.Errorf("install-config pool controlPlane: %w: set at least 1", ErrNoControlPlane)
	case n.arbiter < 0:
		return counts{}, fmt.Errorf("install-config pool arbiter: %w: %d, set at least 0", ErrNegativeReplicas, n.arbiter)
	}
	if len(in.Compute) == 0 {
		n.workers = addWorkers(0, defaultReplicas)
	}
	for i, pool := range in.Compute {
		fallback := int64(defaultReplicas)
		if pool.Name == edgePool {
			fallback = 0
		}
		replicas := replicasOr(pool.Replicas, fallback)
		if replicas < 0 {
			return counts{}, fmt.Errorf("install-config pool compute[%d] %q: %w: %d, set at least 0", i, pool.Name, ErrNegativeReplicas, replicas)
		}
		n.workers = addWorkers(n.workers, replicas)
	}
	return n, nil
}

// addWorkers stops counting at 2, the highest number that any rule asks about, so that no sum can overflow.
func addWorkers(sum, more int64) int64 {
	return min(2, sum+min(2, more))
}

func replicasOr(replicas *int64, fallback int64) int64 {
	if replicas == nil {
		return fallback
	}
	return *replicas
}
