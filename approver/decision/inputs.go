// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/topology"
)

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

// Inputs are the inputs of the decision: objects as they were read, with their managedFields, or nil for those that do
// not exist.
type Inputs struct {
	Cluster        *topology.Cluster        // nil while no Infrastructure was read
	Mode           Mode                     // empty means NodeClientOff
	Machines       approver.MachinePresence // of machine.openshift.io or cluster.x-k8s.io
	ClusterVersion *configv1.ClusterVersion
	Deployment     *appsv1.Deployment // the stock approver
	ConfigMap      *corev1.ConfigMap  // its configuration
}

// Validate returns an ErrInputs for a Cluster that was not read, an object of another name, and an unknown mode.
func (in Inputs) Validate() error {
	if in.Cluster != nil {
		if err := in.Cluster.Validate(); err != nil {
			return fmt.Errorf("%w: Cluster: %w", approver.ErrInputs, err)
		}
	}
	for _, o := range in.objects() {
		if key := o.GetNamespace() + "/" + o.GetName(); key != o.key {
			return fmt.Errorf("%w: %s %s is not %s", approver.ErrInputs, o.kind, key, o.key)
		}
	}
	if in.Mode != "" && !slices.Contains(Modes(), in.Mode) {
		return fmt.Errorf("%w: no mode %q; want one of %v", approver.ErrInputs, in.Mode, Modes())
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
