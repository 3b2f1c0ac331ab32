// SPDX-License-Identifier: Apache-2.0

package machineconfig

// Names of the module and its objects.
const (
	Name = "machineconfig"

	OperatorName              = "cluster"                   // the MachineConfiguration
	ShutdownName              = "sno-graceful-shutdown"     // the KubeletConfig of the graceful shutdown
	ShutdownMachineConfigName = "99-master-" + ShutdownName // the MachineConfig of the graceful shutdown
)

// The machine-config operator's annotations and labels (U-MCO-1, U-MCO-2).
const (
	AnnotationPrefix   = "machineconfiguration.openshift.io/"
	TopologyAnnotation = AnnotationPrefix + "controlPlaneTopology"
	// DesiredDrainAnnotation is the request of a node, LastAppliedDrainAnnotation the last completed one.
	DesiredDrainAnnotation     = AnnotationPrefix + "desiredDrain"
	LastAppliedDrainAnnotation = AnnotationPrefix + "lastAppliedDrain"
	CurrentConfigAnnotation    = AnnotationPrefix + "currentConfig"
	DesiredConfigAnnotation    = AnnotationPrefix + "desiredConfig"
	// RoleLabel assigns a MachineConfig to a pool. A KubeletConfig selects the master pool by MasterPoolLabel.
	RoleLabel       = AnnotationPrefix + "role"
	MasterPoolLabel = "pools.operator.machineconfiguration.openshift.io/master"
)

// The standard pools.
const (
	MasterPool  = "master"
	WorkerPool  = "worker"
	ArbiterPool = "arbiter"
)

// Labels of nodes. Plain Kubernetes has only ControlPlaneRole.
const (
	MasterRole       = "node-role.kubernetes.io/master"
	ControlPlaneRole = "node-role.kubernetes.io/control-plane"
	ArbiterRole      = "node-role.kubernetes.io/arbiter"
)

// Reasons of a node that waits to be drained.
const (
	ReasonDraining      = "Draining"      // nodes are being drained, or wait for others
	ReasonUpdatesPaused = "UpdatesPaused" // the pool is paused
	ReasonInvalid       = "Invalid"       // a person must correct the node or its pools
)
