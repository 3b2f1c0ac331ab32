package machineconfig

import (
	"github.com/solonode/sno/patch"
)

const (
	// Name is the module's name, in its field owner, annotations, metrics and flags.
	Name = "machineconfig"
	// ConditionPrefix begins the types of the sub-conditions.
	ConditionPrefix = "MachineConfigTopology"

	// OperatorName is the name of the MachineConfiguration of operator.openshift.io.
	OperatorName = "cluster"
	// ShutdownName is the name of the KubeletConfig of the graceful shutdown.
	ShutdownName = "sno-graceful-shutdown"
	// ShutdownMachineConfigName is the name of the MachineConfig of the graceful shutdown.
	ShutdownMachineConfigName = "99-master-" + ShutdownName
)

// The machine-config operator's annotations and labels (U-MCO-1, U-MCO-2).
const (
	// AnnotationPrefix is the prefix of all its annotations.
	AnnotationPrefix   = "machineconfiguration.openshift.io/"
	TopologyAnnotation = AnnotationPrefix + "controlPlaneTopology"
	// DesiredDrainAnnotation is the request of a node, LastAppliedDrainAnnotation the last request that was completed.
	DesiredDrainAnnotation     = AnnotationPrefix + "desiredDrain"
	LastAppliedDrainAnnotation = AnnotationPrefix + "lastAppliedDrain"
	CurrentConfigAnnotation    = AnnotationPrefix + "currentConfig"
	DesiredConfigAnnotation    = AnnotationPrefix + "desiredConfig"
	// RoleLabel assigns a MachineConfig to a pool; MasterPoolLabel is on the master pool, for the selector of a KubeletConfig.
	RoleLabel       = AnnotationPrefix + "role"
	MasterPoolLabel = "pools.operator.machineconfiguration.openshift.io/master"
)

// The pools that are not custom ones.
const (
	MasterPool  = "master"
	WorkerPool  = "worker"
	ArbiterPool = "arbiter"
)

// The labels of nodes. A control-plane node of plain Kubernetes has only ControlPlaneRole.
const (
	MasterRole       = "node-role.kubernetes.io/master"
	ControlPlaneRole = "node-role.kubernetes.io/control-plane"
	ArbiterRole      = "node-role.kubernetes.io/arbiter"
)

// FieldOwner is the server-side apply field owner of this module.
var FieldOwner = patch.FieldOwner(Name)

// Reasons of this module, least severe first. The shared ones are in package patch.
const (
	ReasonSettling        = "Settling"        // a change that restarts the node waits until the pool is at rest
	ReasonDraining        = "Draining"        // nodes are being drained, or wait for their turn
	ReasonUpdatesPaused   = "UpdatesPaused"   // written, but the pool is paused
	ReasonWaitingForNodes = "WaitingForNodes" // the nodes or their pods have not been read yet
	ReasonDrainFailed     = "DrainFailed"     // a budget or a pod kept a drain from ending; it is retried
)
