// SPDX-License-Identifier: Apache-2.0

package decision

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/overrides"
)

const (
	// ConditionPrefix is the prefix of condition types.
	ConditionPrefix = "ApproverTopology"

	// Namespace is the namespace of the stock approver (U-APP-1).
	Namespace = "openshift-cluster-machine-approver"
	// DeploymentName is the name of the stock approver's Deployment.
	DeploymentName = "machine-approver"
	// ConfigMapName is the name of its optional configuration.
	ConfigMapName = "machine-approver-config"
	// ConfigKey is the key in that ConfigMap.
	ConfigKey = "config.yaml"

	// EditAnnotation is on an edited ConfigMap, and on the Deployment's pod template, where a change restarts the stock
	// approver.
	EditAnnotation = patch.Domain + "/" + approver.Name + "-edit"

	// FieldReplicas is the field that the mode Off writes.
	FieldReplicas = ".spec.replicas"
)

// FieldOwner is the server-side apply field owner of this module.
var FieldOwner = patch.FieldOwner(approver.Name)

// Reasons of the patch, least severe first. Those of a verdict are in package requests.
const (
	ReasonAsExpected               = patch.ReasonAsExpected
	ReasonNotNeeded                = patch.ReasonNotNeeded
	ReasonOptedOut                 = patch.ReasonOptedOut
	ReasonTakingOver               = "TakingOver"
	ReasonRestarting               = "Restarting"
	ReasonWaitingForInfrastructure = patch.ReasonWaitingForInfrastructure
	ReasonWaitingForMachines       = "WaitingForMachines"
	ReasonFieldOwnedByOther        = patch.ReasonFieldOwnedByOther
	ReasonReverted                 = patch.ReasonReverted
	ReasonInvalid                  = patch.ReasonInvalid
	ReasonRequestsPending          = "RequestsPending"
	ReasonCertificatesExpiring     = "CertificatesExpiring"
)

// Override returns the entry of spec.overrides in the ClusterVersion that the mode Off needs.
func Override() configv1.ComponentOverride { return overrides.Deployment(Namespace, DeploymentName) }

// OverrideSubject names the overridden object in messages.
const OverrideSubject = "the stock approver"
