// SPDX-License-Identifier: Apache-2.0

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

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
)

// ErrInputs is returned for inputs that no cluster can have.
var ErrInputs = errors.New("invalid inputs")

// DrainPolicy is which nodes are drained if the control plane is SingleReplica. Empty means DrainNever.
type DrainPolicy string

// The values of DrainPolicy.
const (
	DrainNever   DrainPolicy = "never"
	DrainWorkers DrainPolicy = "workers" // workers, if their pods certainly fit on other nodes
)

// GracefulShutdown is where the kubelets of the master pool shut down gracefully. Empty means GracefulAuto.
type GracefulShutdown string

// The values of GracefulShutdown.
const (
	GracefulAuto GracefulShutdown = "auto" // clusters of one node
	GracefulOn   GracefulShutdown = "on"
	GracefulOff  GracefulShutdown = "off"
)

// Inputs are what the decisions need, with managedFields. They are not modified. A nil list was not read.
type Inputs struct {
	Cluster *topology.Cluster // nil while no Infrastructure was read
	Nodes   []corev1.Node

	// For DrainRequired: the node, and the others that are drained or being drained.
	Node         string
	Draining     []string
	Policy       DrainPolicy
	Pods         []corev1.Pod                   // all for DrainRequired, those of ShutdownNodes for Decide
	Budgets      []policyv1.PodDisruptionBudget // as the following, for DrainRequired with DrainWorkers
	ReplicaSets  []appsv1.ReplicaSet
	StatefulSets []appsv1.StatefulSet

	// For Decide and Observe. Pools are nil if the cluster does not serve them.
	Pools                []mcfgv1.MachineConfigPool
	KubeletConfigs       []mcfgv1.KubeletConfig
	MachineConfig        *mcfgv1.MachineConfig // called ShutdownMachineConfigName
	MachineConfiguration *operatorv1.MachineConfiguration
	Graceful             GracefulShutdown
	ShutdownBound        time.Duration // 0 means DefaultShutdownBound
}

// Validate returns ErrInputs for a wrong object or setting, topology.ErrClusterNotRead for a Cluster that was not read.
func (in Inputs) Validate() error {
	if in.Cluster != nil {
		if err := in.Cluster.Validate(); err != nil {
			return err //nolint:wrapcheck // it describes the remedy
		}
	}
	if c := in.MachineConfig; c != nil && c.Name != ShutdownMachineConfigName {
		return fmt.Errorf("%w: MachineConfig %s is not %s", ErrInputs, c.Name, ShutdownMachineConfigName)
	}
	if c := in.MachineConfiguration; c != nil && c.Name != OperatorName {
		return fmt.Errorf("%w: MachineConfiguration %s is not %s", ErrInputs, c.Name, OperatorName)
	}
	if known := []DrainPolicy{"", DrainNever, DrainWorkers}; !slices.Contains(known, in.Policy) {
		return fmt.Errorf("%w: drain policy %q; want one of %q", ErrInputs, in.Policy, known[1:])
	}
	if known := []GracefulShutdown{"", GracefulAuto, GracefulOn, GracefulOff}; !slices.Contains(known, in.Graceful) {
		return fmt.Errorf("%w: graceful shutdown %q; want one of %q", ErrInputs, in.Graceful, known[1:])
	}
	if bound := in.ShutdownBound; bound != 0 && bound < MinShutdownBound {
		return fmt.Errorf("%w: a shutdown bound of %s; want %s or more, or graceful shutdown %q", ErrInputs, bound, MinShutdownBound, GracefulOff)
	}
	return nil
}

func (in Inputs) masterPool() *mcfgv1.MachineConfigPool {
	for i := range in.Pools {
		if in.Pools[i].Name == MasterPool {
			return &in.Pools[i]
		}
	}
	return nil
}

func (in Inputs) ownKubeletConfig() *mcfgv1.KubeletConfig {
	for i := range in.KubeletConfigs {
		if in.KubeletConfigs[i].Name == ShutdownName {
			return &in.KubeletConfigs[i]
		}
	}
	return nil
}

// shutdownObjects returns the existing objects of the graceful shutdown.
func (in Inputs) shutdownObjects() []metav1.Object {
	var objects []metav1.Object
	if config := in.ownKubeletConfig(); config != nil {
		objects = append(objects, config)
	}
	if in.MachineConfig != nil {
		objects = append(objects, in.MachineConfig)
	}
	return objects
}

// OptedOut reports whether the MachineConfiguration has the opt-out annotation.
func (in Inputs) OptedOut() bool {
	return in.MachineConfiguration != nil && patch.OptsOut(in.MachineConfiguration, Name)
}
