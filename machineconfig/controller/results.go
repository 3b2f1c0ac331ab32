// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"time"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
)

var (
	nodeMessages = apply.Messages{
		Subject: "A node", Creator: "its kubelet", Resource: "nodes, pods and pods/eviction", WouldApply: "nodes would be annotated with the topology",
	}
	shutdownMessages = apply.Messages{
		Subject: "The graceful shutdown", Creator: "this module", Resource: "kubeletconfigs and machineconfigs.machineconfiguration.openshift.io",
		WouldApply: "graceful shutdown would be configured",
	}
)

var (
	handlingResult  = patch.Result{State: patch.InForce, Reason: patch.ReasonAsExpected, Message: "Drain requests of nodes are handled"}
	annotatedResult = patch.Result{State: patch.InForce, Reason: patch.ReasonAsExpected,
		Message: "The machine-config operator drains nodes, which are annotated with the topology"}
	optedOutResult = patch.Result{State: patch.OptedOut, Reason: patch.ReasonOptedOut,
		Message: "The annotation " + patch.OptOutAnnotation + " keeps this module away; remove it to have drain requests handled"}
	invalidResult = failed(patch.ReasonInvalid, "The annotation "+machineconfig.DesiredDrainAnnotation+
		" of a node requests neither a drain nor an uncordon; the request is ignored until it is corrected")
	dryRunResult  = patch.Result{State: patch.WouldChange, Reason: patch.ReasonDryRun, Message: "Dry run: drain requests of nodes would be handled"}
	pendingResult = patch.Result{State: patch.Waiting, Reason: machineconfig.ReasonDraining,
		Message: "Drain requests of nodes are pending, which takes a controller that keeps running"}
	ownedResult = patch.Result{State: patch.Blocked, Reason: patch.ReasonFieldOwnedByOther, After: time.Minute, Message: "The annotation " +
		machineconfig.LastAppliedDrainAnnotation + " of a node is owned by another manager and stays as it is, so the node's request is ignored; " +
		"remove the annotation or start with --force-conflicts"}
	drainingResult = patch.Result{State: patch.Progressing, Reason: machineconfig.ReasonDraining, Message: "Nodes are being drained"}
)

func poolFailure(err error) *patch.Result {
	result := failed(patch.ReasonInvalid, "The machine config pools do not determine which node may be drained; see the controller's log")
	if errors.Is(err, machineconfig.ErrMaxUnavailable) {
		result.Message = "The spec.maxUnavailable of a MachineConfigPool is neither a number nor a percentage; its nodes wait until it is corrected"
	}
	return &result
}

func failure(err error) *patch.Result {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errOwned):
		return &ownedResult
	}
	return nodeMessages.Failed(machineconfig.Name, err)
}

func failed(reason, message string) patch.Result {
	return patch.Result{State: patch.Failed, Reason: reason, Message: message}
}
