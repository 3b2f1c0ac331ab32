// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/patch"
)

func ExampleChain() {
	type inputs struct {
		object   metav1.Object
		topology string
	}
	chain := patch.Chain[inputs]{
		{Name: "OptedOut", OwnedFields: patch.ReleaseFields, Evaluate: func(in inputs) *patch.Result {
			if in.object == nil || !patch.OptsOut(in.object, "ingress") {
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
	for _, in := range []inputs{{}, {object: &metav1.ObjectMeta{Annotations: map[string]string{patch.OptOutAnnotation: "console,ingress"}}}, {topology: "SingleReplica"}} {
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
