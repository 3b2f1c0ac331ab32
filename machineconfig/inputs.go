package machineconfig

import (
	"errors"
	"fmt"
	"slices"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/topology"
)

// ErrInputs is returned for inputs that no cluster can have.
var ErrInputs = errors.New("invalid inputs")

// DrainPolicy says which nodes of a cluster with one control-plane node are drained before they restart. Everywhere else nodes
// are drained as ever.
type DrainPolicy string

const (
	// DrainNever is the default, also when empty: no node of such a cluster is drained, whatever its role.
	DrainNever DrainPolicy = "never"
	// DrainWorkers drains a worker if there is certainly room for all its pods elsewhere. The control-plane node is never drained.
	DrainWorkers DrainPolicy = "workers"
)

// DrainPolicies lists them, the default first.
func DrainPolicies() []DrainPolicy { return []DrainPolicy{DrainNever, DrainWorkers} }

// GracefulShutdown says on which clusters the kubelets of the master pool are told to stop their pods gracefully.
type GracefulShutdown string

const (
	// GracefulAuto is the default, also when empty: on a cluster of exactly one node.
	GracefulAuto GracefulShutdown = "auto"
	// GracefulOn is a person's word that all of them are told, whatever the cluster.
	GracefulOn GracefulShutdown = "on"
	// GracefulOff is a person's word that none is.
	GracefulOff GracefulShutdown = "off"
)

// GracefulShutdowns lists them, the default first.
func GracefulShutdowns() []GracefulShutdown {
	return []GracefulShutdown{GracefulAuto, GracefulOn, GracefulOff}
}

// Inputs are what the decisions need: objects as they were read, with their managedFields. They are only read. Of a list, nil means
// that it was not read, not nil and empty that there are none. No decision needs all of them; each says which.
type Inputs struct {
	// Cluster is what topology.FromInfrastructure or topology.FromUnstructured read; nil while no Infrastructure was read.
	Cluster *topology.Cluster
	// Nodes are all nodes of the cluster.
	Nodes []corev1.Node

	// Node is the name of the node that DrainRequired is asked about, Leaving those of others that are being drained or were
	// let go already and are not back.
	Node    string
	Leaving []string
	// Policy is which nodes may be drained where there is one control-plane node; empty is DrainNever.
	Policy DrainPolicy
	// Pods are all pods of the cluster for DrainRequired. Decide needs no more than those of the control-plane nodes.
	Pods []corev1.Pod
	// Budgets, ReplicaSets and StatefulSets are all of the cluster. Only DrainRequired with DrainWorkers needs them.
	Budgets      []policyv1.PodDisruptionBudget
	ReplicaSets  []appsv1.ReplicaSet
	StatefulSets []appsv1.StatefulSet

	// ForceConflicts takes the topology annotation from whoever owns it. Off unless a person asked for it.
	ForceConflicts bool

	// Pools are all MachineConfigPools. nil, or empty, also where the cluster has no such kind.
	Pools []mcfgv1.MachineConfigPool
	// KubeletConfigs are all of the cluster, MachineConfig is the one called ShutdownMachineConfigName; nil when there is none.
	KubeletConfigs []mcfgv1.KubeletConfig
	MachineConfig  *mcfgv1.MachineConfig
	// MachineConfiguration is machineconfigurations.operator.openshift.io/cluster; nil where there is none.
	MachineConfiguration *operatorv1.MachineConfiguration
	// Graceful is a person's word on graceful shutdown; empty is GracefulAuto.
	Graceful GracefulShutdown
	// ShutdownBound is the longest that a shutdown may take; 0 is DefaultShutdownBound.
	ShutdownBound time.Duration
}

// Validate reports an object that is not the one its place is for, settings that mean nothing (ErrInputs), and a Cluster that nobody read
// (topology.ErrClusterNotRead).
func (in Inputs) Validate() error {
	if in.Cluster != nil {
		if err := in.Cluster.Validate(); err != nil {
			return err //nolint:wrapcheck // it says what to do
		}
	}
	for _, is := range []struct {
		object     metav1.Object
		kind, name string
		absent     bool
	}{
		{in.MachineConfig, "MachineConfig", ShutdownMachineConfigName, in.MachineConfig == nil},
		{in.MachineConfiguration, "MachineConfiguration", OperatorName, in.MachineConfiguration == nil},
	} {
		if !is.absent && is.object.GetName() != is.name {
			return fmt.Errorf("%w: %s %s is not %s", ErrInputs, is.kind, is.object.GetName(), is.name)
		}
	}
	if in.Policy != "" && !slices.Contains(DrainPolicies(), in.Policy) {
		return fmt.Errorf("%w: drain policy %q; want one of %q", ErrInputs, in.Policy, DrainPolicies())
	}
	if in.Graceful != "" && !slices.Contains(GracefulShutdowns(), in.Graceful) {
		return fmt.Errorf("%w: graceful shutdown %q; want one of %q", ErrInputs, in.Graceful, GracefulShutdowns())
	}
	if in.ShutdownBound != 0 && in.ShutdownBound < MinShutdownBound {
		return fmt.Errorf("%w: a shutdown bound of %s; want %s or more, or graceful shutdown %q", ErrInputs, in.ShutdownBound, MinShutdownBound, GracefulOff)
	}
	return nil
}

// masterPool is the pool of that name; nil when there is none.
func (in Inputs) masterPool() *mcfgv1.MachineConfigPool {
	for i := range in.Pools {
		if in.Pools[i].Name == MasterPool {
			return &in.Pools[i]
		}
	}
	return nil
}

// ourKubeletConfig is the one of our name; nil when there is none.
func (in Inputs) ourKubeletConfig() *mcfgv1.KubeletConfig {
	for i := range in.KubeletConfigs {
		if in.KubeletConfigs[i].Name == ShutdownName {
			return &in.KubeletConfigs[i]
		}
	}
	return nil
}
