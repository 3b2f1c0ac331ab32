package approver

import (
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/workload"
)

// Observe tells how the patch stands once Desired has nothing left to write and nothing to say: InForce when what runs of the stock
// approver has read that it may approve no client certificate, or nothing of it runs; Progressing until then. Inputs that
// Validate refuses are Failed.
func Observe(in PatchInputs) patch.Result {
	if err := in.Validate(); err != nil {
		return *invalid(err)
	}
	if in.Deployment == nil || in.Cluster == nil {
		return *restarting("The patch is being written")
	}
	unknown := in.Cluster.UnknownValues()
	inForce := func(message string) patch.Result {
		return patch.Result{State: patch.InForce, Reason: ReasonAsExpected, Message: message + unknown}
	}
	stopped := in.replicas() == 0 && in.Deployment.Status.Replicas == 0
	switch {
	case stopped:
		return inForce("The stock approver is off; serving certificates are not renewed by it either")
	case in.Mode == Off:
		return *restarting("Waiting for the stock approver to stop")
	case !workload.RolledOut(in.Deployment):
		return *restarting("Waiting for the stock approver to start, which is when it reads that its node-client flow is disabled")
	case in.token() == "":
		return inForce("Somebody else's configuration disables the node-client flow of the stock approver")
	}
	return inForce("The node-client flow of the stock approver is disabled, and it goes on renewing serving certificates")
}
