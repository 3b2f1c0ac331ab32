// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
)

var (
	// ErrNegativeReplicas is returned for a pool with negative replicas.
	ErrNegativeReplicas = errors.New("negative replicas")
	// ErrNoControlPlane is returned for a control-plane pool with 0 replicas.
	ErrNoControlPlane = errors.New("no control-plane replicas")
)

// The installer's defaults. The edge pool, in AWS Local and Wavelength Zones, defaults to 0 replicas.
const (
	defaultReplicas = 3
	edgePool        = "edge"
)

// Install is the install-config without workers that are added later (R-TOP-7).
type Install struct {
	Platform     configv1.PlatformType // empty for None
	ControlPlane *int64                // replicas; nil means 3, 0 is ErrNoControlPlane
	Arbiter      *int64                // replicas; nil means 0. It matters only with two or more control-plane replicas
	Compute      []ComputePool         // the day-1 workers; an empty list means one pool of 3
}

// ComputePool is a compute pool. nil replicas mean 3, or 0 for the pool "edge".
type ComputePool struct {
	Name     string
	Replicas *int64
}

type counts struct {
	controlPlane, arbiter int64
	workers               int64 // 2 means 2 or more
}

func (in Install) counts() (counts, error) {
	n := counts{controlPlane: replicasOr(in.ControlPlane, defaultReplicas), arbiter: replicasOr(in.Arbiter, 0)}
	switch {
	case n.controlPlane < 0:
		return counts{}, fmt.Errorf("install-config pool controlPlane: %w: %d, set at least 1", ErrNegativeReplicas, n.controlPlane)
	case n.controlPlane == 0:
		return counts{}, fmt.Errorf("install-config pool controlPlane: %w: set at least 1", ErrNoControlPlane)
	case n.arbiter < 0:
		return counts{}, fmt.Errorf("install-config pool arbiter: %w: %d, set at least 0", ErrNegativeReplicas, n.arbiter)
	}
	if len(in.Compute) == 0 {
		n.workers = 2
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
		n.workers = min(2, n.workers+min(2, replicas)) // no sum can overflow
	}
	return n, nil
}

func replicasOr(replicas *int64, fallback int64) int64 {
	if replicas == nil {
		return fallback
	}
	return *replicas
}
