// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/solonode/sno/topology"
)

// ErrInputs is returned for inputs that no cluster can have.
var ErrInputs = errors.New("invalid inputs")

// DrainPolicy is which nodes are drained if the control plane is SingleReplica. Empty means DrainNever.
type DrainPolicy string

// The values of DrainPolicy.
const (
	DrainNever   DrainPolicy = "never"
	DrainWorkers DrainPolicy = "workers" // workers, if their pods certainly fit on other nodes
)

// Inputs are what DrainRequired needs. They are not modified. A nil list was not read.
type Inputs struct {
	Cluster  *topology.Cluster // nil while no Infrastructure was read
	Nodes    []corev1.Node
	Node     string   // the one to drain
	Draining []string // the others that are drained or being drained
	Policy   DrainPolicy

	// With DrainWorkers.
	Pods         []corev1.Pod // all
	Budgets      []policyv1.PodDisruptionBudget
	ReplicaSets  []appsv1.ReplicaSet
	StatefulSets []appsv1.StatefulSet
}

// Validate returns ErrInputs for an unknown policy, topology.ErrClusterNotRead for a Cluster that was not read.
func (in Inputs) Validate() error {
	if in.Cluster != nil {
		if err := in.Cluster.Validate(); err != nil {
			return err //nolint:wrapcheck // it describes the remedy
		}
	}
	if known := []DrainPolicy{"", DrainNever, DrainWorkers}; !slices.Contains(known, in.Policy) {
		return fmt.Errorf("%w: drain policy %q; want one of %q", ErrInputs, in.Policy, known[1:])
	}
	return nil
}
