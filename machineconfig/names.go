package machineconfig

import (
	"github.com/solonode/sno/patch"
)

const (
	// Name is the module's name, in its field owner, annotations, metrics and flags.
	Name = "machineconfig"
	// ConditionPrefix begins the types of the sub-conditions.
	ConditionPrefix = "MachineConfigTopology"

	// OperatorName is the name of the machine-config operator's own resource, the only MachineConfiguration of operator.openshift.io.
	OperatorName = "cluster"
	// ShutdownName is the name of the KubeletConfig and, behind MachineConfigPrefix, of the MachineConfig that make the kubelet of the
	// one node stop its pods gracefully.
	ShutdownName = "sno-graceful-shutdown"
	// MachineConfigPrefix begins the names of machine configs that are merged last of those for the master pool.
	MachineConfigPrefix = "99-master-"
	// ShutdownMachineConfigName is the name of that MachineConfig.
	ShutdownMachineConfigName = MachineConfigPrefix + ShutdownName
)

// The machine-config operator's keys (U-MCO-1, U-MCO-2).
const (
	// TopologyAnnotation is where the daemon of a node reads the control-plane topology.
	TopologyAnnotation = "machineconfiguration.openshift.io/controlPlaneTopology"
	// DesiredDrainAnnotation is what a node asks for, LastAppliedDrainAnnotation what was done of it last.
	DesiredDrainAnnotation     = "machineconfiguration.openshift.io/desiredDrain"
	LastAppliedDrainAnnotation = "machineconfiguration.openshift.io/lastAppliedDrain"
	// CurrentConfigAnnotation and DesiredConfigAnnotation name the rendered machine config that a node has, and the one it is to take.
	CurrentConfigAnnotation = "machineconfiguration.openshift.io/currentConfig"
	DesiredConfigAnnotation = "machineconfiguration.openshift.io/desiredConfig"
	// RoleLabel is the label of a machine config that says for which pool it is.
	RoleLabel = "machineconfiguration.openshift.io/role"
	// MasterPoolLabel is the label of the master pool by which a KubeletConfig selects it.
	MasterPoolLabel = "pools.operator.machineconfiguration.openshift.io/master"
)

// The pools that every cluster has, and the one of clusters with an arbiter.
const (
	MasterPool  = "master"
	WorkerPool  = "worker"
	ArbiterPool = "arbiter"
)

// The labels of the nodes in them. A node of plain Kubernetes has only ControlPlaneRole.
const (
	MasterRole       = "node-role.kubernetes.io/master"
	ControlPlaneRole = "node-role.kubernetes.io/control-plane"
	ArbiterRole      = "node-role.kubernetes.io/arbiter"
	WorkerRole       = "node-role.kubernetes.io/worker"
)

// FieldOwner is the server-side apply field owner of this module.
var FieldOwner = patch.FieldOwner(Name)

// Reasons of this module, least severe first. The shared ones are in package patch.
const (
	ReasonAsExpected               = patch.ReasonAsExpected               // in force, and the nodes have it
	ReasonNotNeeded                = patch.ReasonNotNeeded                // this topology needs nothing here
	ReasonOptedOut                 = patch.ReasonOptedOut                 // a person keeps sno away
	ReasonDryRun                   = patch.ReasonDryRun                   // would be written
	ReasonSettling                 = "Settling"                           // a change that restarts the node waits until the pool is at rest
	ReasonDraining                 = "Draining"                           // nodes are being drained, or are waiting for their turn
	ReasonRollingOut               = patch.ReasonRollingOut               // written, the node has not taken it yet
	ReasonUpdatesPaused            = "UpdatesPaused"                      // written, but a person paused the pool
	ReasonWaitingForInfrastructure = patch.ReasonWaitingForInfrastructure // the topology is not known yet
	ReasonWaitingForNodes          = "WaitingForNodes"                    // the nodes or their pods are not known yet
	ReasonWaitingForObject         = patch.ReasonWaitingForObject         // there is no machine config pool
	ReasonFieldOwnedByOther        = patch.ReasonFieldOwnedByOther        // a KubeletConfig or a field is somebody else's
	ReasonDrainFailed              = "DrainFailed"                        // a budget or a pod kept a drain from ending; tried again
	ReasonReverted                 = patch.ReasonReverted                 // somebody took the patch off
	ReasonForbidden                = patch.ReasonForbidden                // RBAC
	ReasonInvalid                  = patch.ReasonInvalid                  // input that cannot be understood
	ReasonApplyFailed              = patch.ReasonApplyFailed              // any other answer of the API server
)

// StockManagers are the field managers under which a machine-config operator writes nodes.
func StockManagers() []string { return []string{"machine-config-controller", "machine-config-daemon"} }
