package patch

import "github.com/solonode/sno/topology"

// Check is one small precondition of a patch. Evaluate returns the result that ends the chain, or nil when the check has
// nothing to say. It is a pure function of its inputs.
type Check[I any] struct {
	// Name is what a reader of the chain sees, CamelCase.
	Name string
	// Evaluate looks at the inputs.
	Evaluate func(I) *Result
}

// Chain is an ordered list of checks. Order matters: the first that has something to say wins.
type Chain[I any] []Check[I]

// Run evaluates the checks in order and returns the first result, or nil when every check was content.
func (c Chain[I]) Run(inputs I) *Result {
	for _, check := range c {
		if result := check.Evaluate(inputs); result != nil {
			return result
		}
	}
	return nil
}

// TopologyKnown is the check that every module begins with: nothing is patched and nothing is let go of before an
// Infrastructure object was read. nil is a cluster that was not read yet.
func TopologyKnown(cluster *topology.Cluster) *Result {
	if cluster != nil {
		return nil
	}
	return &Result{State: Waiting, Reason: ReasonWaitingForInfrastructure,
		Message: "There is no Infrastructure object yet, so the topology is not known; nothing is changed until there is"}
}
