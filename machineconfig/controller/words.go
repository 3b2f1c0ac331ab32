package controller

import (
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
)

var (
	nodeWords = apply.Words{
		Subject: "A node", MadeBy: "its kubelet", Resource: "nodes, pods and pods/eviction",
		WouldApply: "the daemon of a node would learn the topology",
	}
	shutdownWords = apply.Words{
		Subject: "The graceful shutdown", MadeBy: "this module", Resource: "kubeletconfigs and machineconfigs.machineconfiguration.openshift.io",
		WouldApply: "the kubelet would be told to stop pods gracefully",
	}
)

// What is said of the drain protocol, and of the annotation that takes its place beside a stock machine-config operator.
var (
	answeringResult = patch.Result{State: patch.InForce, Reason: machineconfig.ReasonAsExpected, Message: "Requests of nodes to be drained are answered"}
	toldResult      = patch.Result{State: patch.InForce, Reason: machineconfig.ReasonAsExpected,
		Message: "The machine-config operator drains, and its daemons are told the topology"}
	optedOutResult = patch.Result{State: patch.OptedOut, Reason: machineconfig.ReasonOptedOut,
		Message: "The annotation " + patch.OptOutAnnotation + " keeps this module away; remove it to have requests of nodes answered"}
	garbledResult = patch.Result{State: patch.Failed, Reason: machineconfig.ReasonInvalid, Message: "A node asks for something that is " +
		"neither a drain nor an uncordon; it gets no answer until its annotation " + machineconfig.DesiredDrainAnnotation + " is repaired"}
	dryRunResult     = patch.Result{State: patch.WouldChange, Reason: machineconfig.ReasonDryRun, Message: "Dry run: requests of nodes would be answered"}
	unansweredResult = patch.Result{State: patch.Waiting, Reason: machineconfig.ReasonDraining,
		Message: "Nodes ask to be drained or uncordoned, which takes a controller that keeps running"}
	drainingResult = patch.Result{State: patch.Progressing, Reason: machineconfig.ReasonDraining, Message: "Nodes are being drained"}
)

// turnPause is how often nodes are looked at again while one waits for its turn: no watch tells that another one is back.
const turnPause = 30 * time.Second

// waiting is what there is to say of a node that has to wait.
func waiting(hold machineconfig.Hold) patch.Result {
	result := patch.Result{State: patch.Progressing, Reason: machineconfig.ReasonDraining, Message: "A node waits to be drained. " + hold.Why}
	switch hold.Why {
	case machineconfig.HeldByPause:
		result.Reason = machineconfig.ReasonUpdatesPaused
	case machineconfig.HeldByNoPool, machineconfig.HeldByWindows:
		result.State, result.Reason = patch.Failed, machineconfig.ReasonInvalid
	case machineconfig.HeldByOthers, machineconfig.HeldByMasters:
		result.After = turnPause
	}
	return result
}

// paused is what there is to say of pools that a person paused; nil when they keep nothing from their nodes.
func paused(waits []machineconfig.Waiting) *patch.Result {
	if len(waits) == 0 {
		return nil
	}
	lines := make([]string, len(waits))
	for i, each := range waits {
		lines[i] = each.String()
	}
	return &patch.Result{State: patch.Progressing, Reason: machineconfig.ReasonUpdatesPaused,
		Message: "Until the pause ends, paused pools keep from their nodes: " + strings.Join(lines, "; ")}
}

// unclear is what there is to say when it cannot be told whose turn it is.
func unclear(err error) patch.Result {
	message := "The machine config pools do not say which node may be drained; the controller's log says why"
	if errors.Is(err, machineconfig.ErrMaxUnavailable) {
		message = "A MachineConfigPool has a spec.maxUnavailable that is neither a number nor a percentage; nodes wait until it is repaired"
	}
	return patch.Result{State: patch.Failed, Reason: machineconfig.ReasonInvalid, Message: message}
}

// result is what there is to say of a drain that is wanted.
func (d background) result() patch.Result {
	if d.err == nil {
		return drainingResult
	}
	after := time.Duration(0)
	if d.cancel == nil {
		after = max(time.Until(d.again), time.Millisecond)
	}
	result := patch.Result{State: patch.Failed, Reason: machineconfig.ReasonApplyFailed,
		Message: "A node cannot be drained; the controller's log has the API server's answer. It is tried again"}
	switch {
	case errors.Is(d.err, errOwned):
		result = owned
	case apierrors.IsForbidden(d.err):
		result.Reason = machineconfig.ReasonForbidden
		result.Message = "Not permitted to drain a node, which takes " + nodeWords.Resource + "; apply the controller's RBAC"
	case errors.Is(d.err, errTimeout):
		result.Reason = machineconfig.ReasonDrainFailed
		result.Message = "A drain takes too long: a PodDisruptionBudget does not let go, or a pod does not end; the events of the node tell. " +
			"It is tried again"
	}
	result.After = after
	return result
}

// failure is what there is to say of something that was not done.
func failure(err error) patch.Result {
	if errors.Is(err, errOwned) {
		return owned
	}
	return *nodeWords.Failed(machineconfig.Name, err)
}

var owned = patch.Result{State: patch.Blocked, Reason: machineconfig.ReasonFieldOwnedByOther, After: time.Minute, Message: "The annotation " +
	machineconfig.LastAppliedDrainAnnotation + " of a node is owned by somebody else and stays as it is, so the node gets no answer; " +
	"remove it there or start with --force-conflicts"}
