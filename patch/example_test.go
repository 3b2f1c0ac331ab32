package patch_test

import (
	"fmt"
	"time"

	"github.com/solonode/sno/patch"
)

// The preconditions of a patch are small and named, and the first that has something to say wins.
func ExampleChain() {
	type inputs struct {
		annotations map[string]string
		topology    string
	}
	chain := patch.Chain[inputs]{
		{Name: "OptedOut", Evaluate: func(in inputs) *patch.Result {
			if !patch.OptsOut(in.annotations, "ingress") {
				return nil
			}
			return &patch.Result{State: patch.OptedOut, Reason: patch.ReasonOptedOut, Message: "An annotation keeps the module away"}
		}},
		{Name: "TopologyKnown", Evaluate: func(in inputs) *patch.Result {
			if in.topology != "" {
				return nil
			}
			return &patch.Result{State: patch.Waiting, Reason: patch.ReasonWaitingForObject, Message: "The Infrastructure object does not exist yet"}
		}},
	}
	fmt.Println(chain.Run(inputs{}))
	fmt.Println(chain.Run(inputs{annotations: map[string]string{patch.OptOutAnnotation: "console,ingress"}}))
	fmt.Println(chain.Run(inputs{topology: "SingleReplica"}) == nil)
	// Output:
	// Waiting (WaitingForObject): The Infrastructure object does not exist yet
	// OptedOut (OptedOut): An annotation keeps the module away
	// true
}

// One result tells the queue when to look again, the status what to show, and the recorder what to say.
func ExampleResult() {
	result := patch.Result{
		State: patch.Reverted, Reason: patch.ReasonReverted, Message: "Somebody took the patch off", After: 5 * time.Minute,
	}
	after, err := result.Requeue()
	fmt.Println(after, err)
	for _, condition := range result.Conditions("IngressTopology", true) {
		fmt.Println(condition.Type, condition.Status, condition.Reason)
	}
	event, send := result.Transition(patch.ReasonAsExpected)
	fmt.Println(send, event.Type, event.Reason, event.Action)
	// Output:
	// 5m0s <nil>
	// IngressTopologyPatchFailing True Reverted
	// IngressTopologyPatchInProgress False AsExpected
	// IngressTopologyPatchInForce False Reverted
	// true Warning Reverted Patch
}
