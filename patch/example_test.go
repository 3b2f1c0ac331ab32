// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"fmt"

	"github.com/solonode/sno/patch"
)

func ExampleChain() {
	type inputs struct {
		annotations map[string]string
		topology    string
	}
	chain := patch.Chain[inputs]{
		{Name: "OptedOut", OwnedFields: patch.ReleaseFields, Evaluate: func(in inputs) *patch.Result {
			if !patch.OptsOut(in.annotations, "ingress") {
				return nil
			}
			return &patch.Result{State: patch.OptedOut, Reason: patch.ReasonOptedOut, Message: "An annotation opts out"}
		}},
		{Name: "TopologyKnown", Evaluate: func(in inputs) *patch.Result {
			if in.topology != "" {
				return nil
			}
			return &patch.Result{State: patch.Waiting, Reason: patch.ReasonWaitingForObject, Message: "The Infrastructure object does not exist yet"}
		}},
	}
	for _, in := range []inputs{{}, {annotations: map[string]string{patch.OptOutAnnotation: "console,ingress"}}, {topology: "SingleReplica"}} {
		result, fields := chain.Run(in)
		fmt.Println(result, fields == patch.ReleaseFields)
	}
	// Output:
	// Waiting (WaitingForObject): The Infrastructure object does not exist yet false
	// OptedOut (OptedOut): An annotation opts out true
	// <nil> false
}

func ExampleResult() {
	result := patch.Result{
		State: patch.Reverted, Reason: patch.ReasonReverted, Message: "Another client removed the patch",
	}
	for _, condition := range result.Conditions("IngressTopology", true) {
		fmt.Println(condition.Type, condition.Status, condition.Reason)
	}
	fmt.Println(result.Transition(patch.ReasonAsExpected))
	// Output:
	// IngressTopologyPatchFailing True Reverted
	// IngressTopologyPatchInProgress False AsExpected
	// IngressTopologyPatchInForce False Reverted
	// Warning Patch
}
