// SPDX-License-Identifier: Apache-2.0

package approver

import (
	"errors"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/topology"
)

// ErrInputs is returned for inputs that no cluster can have.
var ErrInputs = errors.New("invalid inputs")

// Mode is how the stock approver is kept from approving client certificates.
type Mode string

const (
	// NodeClientOff, the default, disables the node-client flow in its configuration; it still renews serving certificates
	// (U-APP-2).
	NodeClientOff Mode = "node-client-off"
	// Off scales it to zero and sets an override in the ClusterVersion, as the enhancement asks (U-APP-7).
	Off Mode = "off"
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{NodeClientOff, Off} }

// MachinePresence is whether Machines exist. MachinesUnknown, the zero value, means that they were not read.
type MachinePresence int

// Values of MachinePresence.
const (
	MachinesUnknown MachinePresence = iota
	MachinesAbsent
	MachinesPresent
)

// Inputs are the inputs of the decision: objects as they were read, with their managedFields, or nil for those that do
// not exist.
type Inputs struct {
	Cluster        *topology.Cluster // nil while no Infrastructure was read
	Mode           Mode              // empty means NodeClientOff
	Machines       MachinePresence   // of machine.openshift.io or cluster.x-k8s.io
	ClusterVersion *configv1.ClusterVersion
	Deployment     *appsv1.Deployment // the stock approver
	ConfigMap      *corev1.ConfigMap  // its configuration
}

// Validate returns an ErrInputs for a Cluster that was not read, an object of another name, and an unknown mode.
func (in Inputs) Validate() error {
	if in.Cluster != nil {
		if err := in.Cluster.Validate(); err != nil {
			return fmt.Errorf("%w: Cluster: %w", ErrInputs, err)
		}
	}
	for _, o := range in.objects() {
		if key := o.GetNamespace() + "/" + o.GetName(); key != o.key {
			return fmt.Errorf("%w: %s %s is not %s", ErrInputs, o.kind, key, o.key)
		}
	}
	if in.Mode != "" && !slices.Contains(Modes(), in.Mode) {
		return fmt.Errorf("%w: no mode %q; want one of %v", ErrInputs, in.Mode, Modes())
	}
	return nil
}

type object struct {
	metav1.Object
	kind, key string
}

func (in Inputs) objects() []object {
	var list []object
	if in.Deployment != nil {
		list = append(list, object{in.Deployment, "Deployment", Namespace + "/" + DeploymentName})
	}
	if in.ConfigMap != nil {
		list = append(list, object{in.ConfigMap, "ConfigMap", Namespace + "/" + ConfigMapName})
	}
	if in.ClusterVersion != nil {
		list = append(list, object{in.ClusterVersion, "ClusterVersion", "/" + overrides.ClusterVersionName})
	}
	return list
}

// Host is what an operator that approves requests knows about its cluster. Package topology reads Cluster.
type Host struct {
	Cluster  topology.Cluster
	Machines MachinePresence
}

// Enabled reports whether an operator may approve client certificates: not on a single control-plane node without
// Machines (R-APP-1). Errors are ErrInputs, and topology.ErrClusterNotRead for a Cluster that was not read.
func Enabled(h Host) (bool, error) {
	if err := h.Cluster.Validate(); err != nil {
		return false, fmt.Errorf("%w: Cluster: %w", ErrInputs, err)
	}
	switch h.Machines {
	case MachinesPresent:
		return true, nil
	case MachinesAbsent:
		return !topology.SingleReplica(h.Cluster.ControlPlane.Mode), nil
	case MachinesUnknown:
	}
	return false, fmt.Errorf("%w: Machines are Unknown: read whether there are any", ErrInputs)
}
