package patch

import "github.com/solonode/sno/topology"

// Ours is what happens to the fields that a module has applied when a check ends the chain.
type Ours bool

const (
	// Keep leaves them on the object.
	Keep Ours = false
	// Release releases them.
	Release Ours = true
)

// Check is one precondition of a patch.
type Check[I any] struct {
	// Name is CamelCase.
	Name string
	// Ours is Release for a check after which the patch is not needed or not allowed.
	Ours Ours
	// Evaluate returns the result that ends the chain, or nil. It is a pure function of its inputs.
	Evaluate func(I) *Result
}

// Chain is an ordered list of checks.
type Chain[I any] []Check[I]

// Run returns the first result of a check, or nil, and what happens to the fields that the module has applied. A Waiting or Failed
// result always keeps them.
func (c Chain[I]) Run(inputs I) (*Result, Ours) {
	for _, check := range c {
		if result := check.Evaluate(inputs); result != nil {
			return result, check.Ours && result.State != Waiting && result.State != Failed
		}
	}
	return nil, Keep
}

// TopologyKnown is the first check of every module: nothing is patched or released before an Infrastructure was read.
func TopologyKnown(cluster *topology.Cluster) *Result {
	if cluster != nil {
		return nil
	}
	return &Result{State: Waiting, Reason: ReasonWaitingForInfrastructure,
		Message: "There is no Infrastructure object yet, so the topology is not known; nothing is changed until there is"}
}
