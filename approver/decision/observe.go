// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology/workload"
)

// Observe returns the state of the patch once Decide returns no Result.
func Observe(in Inputs) patch.Result {
	if in.Deployment == nil || in.Cluster == nil {
		return *restarting("The patch is being written")
	}
	message := "The node-client flow of the stock approver is disabled, and it still renews serving certificates"
	switch {
	case in.replicas() == 0 && in.Deployment.Status.Replicas == 0:
		message = "The stock approver is off; it does not renew serving certificates either"
	case in.Mode == Off:
		return *restarting("Waiting for the stock approver to stop")
	case !workload.RolledOut(in.Deployment):
		return *restarting("Waiting for the stock approver to start with its node-client flow disabled")
	case in.token() == "":
		message = "The configuration of another client disables the node-client flow of the stock approver"
	}
	return patch.Result{State: patch.InForce, Reason: ReasonAsExpected, Message: message + in.Cluster.UnknownValues()}
}
