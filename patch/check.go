package patch

import "github.com/solonode/sno/topology"

// FieldPolicy is what happens to the fields that a module has applied when a check ends the chain.
type FieldPolicy bool

const (
	// KeepFields leaves them on the object.
	KeepFields FieldPolicy = false
	// ReleaseFields releases them.
	ReleaseFields FieldPolicy = true
)

// Check is one precondition of a patch.
type Check[I any] struct {
	// Name is CamelCase.
	Name string
	// OwnedFields is ReleaseFields for a check after which the patch is not needed or not allowed.
	OwnedFields FieldPolicy
	// Evaluate returns the result that ends the chain, or nil. It is a pure function of its inputs.
	Evaluate func(I) *Result
}

// Chain is an ordered list of checks.
type Chain[I any] []Check[I]

// Run returns the first result of a check, or nil, and what happens to the fields that the module has applied. A Waiting or Failed
// result always keeps them.
func (c Chain[I]) Run(inputs I) (*Result, FieldPolicy) {
	for _, check := range c {
		if result := check.Evaluate(inputs); result != nil {
			return result, check.OwnedFields && result.State != Waiting && result.State != Failed
		}
	}
	return nil, KeepFields
}

// TopologyKnown is the first check of every module: nothing is patched or released before an Infrastructure was read.
func TopologyKnown(cluster *topology.Cluster) *Result {
	if cluster != nil {
		return nil
	}
	return &Result{State: Waiting, Reason: ReasonWaitingForInfrastructure,
		Message: "There is no Infrastructure object yet, so the topology is not known; nothing is changed until there is"}
}
