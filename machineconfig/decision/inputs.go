// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
)

// GracefulShutdown is where the kubelets of the master pool shut down gracefully. Empty means GracefulAuto.
type GracefulShutdown string

// The values of GracefulShutdown.
const (
	GracefulAuto GracefulShutdown = "auto" // clusters of one node
	GracefulOn   GracefulShutdown = "on"
	GracefulOff  GracefulShutdown = "off"
)

// Inputs are what the decisions need, with managedFields: in addition to the inputs of DrainRequired, of whose Pods
// only those of ShutdownNodes are needed, those of the graceful shutdown. They are not modified. A nil list was not
// read.
type Inputs struct {
	machineconfig.Inputs

	Pools                []mcfgv1.MachineConfigPool // nil if the cluster does not serve them
	KubeletConfigs       []mcfgv1.KubeletConfig
	MachineConfig        *mcfgv1.MachineConfig // called ShutdownMachineConfigName
	MachineConfiguration *operatorv1.MachineConfiguration
	Graceful             GracefulShutdown
	ShutdownBound        time.Duration // 0 means DefaultShutdownBound
}

// Validate returns ErrInputs for a wrong object or setting, topology.ErrClusterNotRead for a Cluster that was not read.
func (in Inputs) Validate() error {
	if err := in.Inputs.Validate(); err != nil {
		return err //nolint:wrapcheck // it describes the remedy
	}
	if c := in.MachineConfig; c != nil && c.Name != machineconfig.ShutdownMachineConfigName {
		return fmt.Errorf("%w: MachineConfig %s is not %s", machineconfig.ErrInputs, c.Name, machineconfig.ShutdownMachineConfigName)
	}
	if c := in.MachineConfiguration; c != nil && c.Name != machineconfig.OperatorName {
		return fmt.Errorf("%w: MachineConfiguration %s is not %s", machineconfig.ErrInputs, c.Name, machineconfig.OperatorName)
	}
	if known := []GracefulShutdown{"", GracefulAuto, GracefulOn, GracefulOff}; !slices.Contains(known, in.Graceful) {
		return fmt.Errorf("%w: graceful shutdown %q; want one of %q", machineconfig.ErrInputs, in.Graceful, known[1:])
	}
	if bound := in.ShutdownBound; bound != 0 && bound < machineconfig.MinShutdownBound {
		return fmt.Errorf("%w: a shutdown bound of %s; want %s or more, or graceful shutdown %q", machineconfig.ErrInputs, bound, machineconfig.MinShutdownBound, GracefulOff)
	}
	return nil
}

func (in Inputs) masterPool() *mcfgv1.MachineConfigPool {
	for i := range in.Pools {
		if in.Pools[i].Name == machineconfig.MasterPool {
			return &in.Pools[i]
		}
	}
	return nil
}

func (in Inputs) ownKubeletConfig() *mcfgv1.KubeletConfig {
	for i := range in.KubeletConfigs {
		if in.KubeletConfigs[i].Name == machineconfig.ShutdownName {
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
	return in.MachineConfiguration != nil && patch.OptsOut(in.MachineConfiguration, machineconfig.Name)
}
