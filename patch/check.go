// SPDX-License-Identifier: Apache-2.0

package patch

import "github.com/solonode/sno/topology"

// FieldPolicy is what happens to the applied fields of a module when a check ends the chain.
type FieldPolicy bool

// The policies.
const (
	KeepFields    FieldPolicy = false
	ReleaseFields FieldPolicy = true
)

// Check is one precondition of a patch.
type Check[I any] struct {
	Name string // CamelCase
	// OwnedFields is ReleaseFields if the patch is not needed or not allowed when this check ends the chain.
	OwnedFields FieldPolicy
	// Evaluate returns the result that ends the chain, or nil. It must be pure.
	Evaluate func(I) *Result
}

// Chain is a list of checks.
type Chain[I any] []Check[I]

// Run returns the first result of a check, or nil, and the policy. A Waiting or Failed result always keeps the fields.
func (c Chain[I]) Run(inputs I) (*Result, FieldPolicy) {
	for _, check := range c {
		if result := check.Evaluate(inputs); result != nil {
			return result, check.OwnedFields && result.State != Waiting && result.State != Failed
		}
	}
	return nil, KeepFields
}

// TopologyKnown is the first check of each module: nothing is written before an Infrastructure was read.
func TopologyKnown(cluster *topology.Cluster) *Result {
	if cluster != nil {
		return nil
	}
	return &Result{State: Waiting, Reason: ReasonWaitingForInfrastructure,
		Message: "There is no Infrastructure object yet, so the topology is not known; nothing is changed until there is"}
}
