package approver

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/topology"
)

// ErrInputs is returned for inputs that no cluster can have.
var ErrInputs = errors.New("invalid inputs")

// Mode is how the stock approver is kept from approving client certificates.
type Mode string

// The modes.
const (
	// NodeClientOff is the default: the node-client flow is turned off in its configuration, so that it goes on renewing serving
	// certificates, which it can prove (U-APP-2).
	NodeClientOff Mode = "node-client-off"
	// Off turns all of it off, as the enhancement asks: it is scaled to zero, and the cluster-version-operator kept away.
	Off Mode = "off"
)

// Modes lists them, the default first.
func Modes() []Mode { return []Mode{NodeClientOff, Off} }

// Presence is what is known about objects of which only that matters.
type Presence int

const (
	// Unknown is the zero value: they were not read. Nothing is built on it.
	Unknown Presence = iota
	// Absent means that a read said that there are none.
	Absent
	// Present means that there are some.
	Present
)

// PatchInputs are what the patch of the stock approver needs: objects as they were read, with their managedFields. They are only
// read. Of an object, nil means that it is known not to exist: a caller whose read failed does not decide at all.
type PatchInputs struct {
	// Cluster is what topology.FromInfrastructure or topology.FromUnstructured read; nil while no Infrastructure was read.
	Cluster *topology.Cluster
	// Mode is how it is done; empty is NodeClientOff.
	Mode Mode
	// Machines tells whether there are any Machines, of machine.openshift.io or of cluster.x-k8s.io. A cluster that serves neither
	// kind has none.
	Machines Presence
	// ClusterVersion is clusterversions.config.openshift.io/version; nil on a cluster that has no cluster-version-operator.
	ClusterVersion *configv1.ClusterVersion
	// Deployment is the stock approver, ConfigMap its configuration.
	Deployment *appsv1.Deployment
	ConfigMap  *corev1.ConfigMap
}

// Validate reports a Cluster that nobody read, an object that is not the one its place is for, and a mode that is none.
func (in PatchInputs) Validate() error {
	if in.Cluster != nil {
		if err := in.Cluster.Validate(); err != nil {
			return fmt.Errorf("%w: Cluster: %w", ErrInputs, err)
		}
	}
	for _, is := range []struct {
		object          metav1.Object
		kind, namespace string
		name            string
		absent          bool
	}{
		{in.ClusterVersion, "ClusterVersion", "", ClusterVersionName, in.ClusterVersion == nil},
		{in.Deployment, "Deployment", Namespace, DeploymentName, in.Deployment == nil},
		{in.ConfigMap, "ConfigMap", Namespace, ConfigMapName, in.ConfigMap == nil},
	} {
		if !is.absent && (is.object.GetNamespace() != is.namespace || is.object.GetName() != is.name) {
			return fmt.Errorf("%w: %s %s/%s is not %s/%s", ErrInputs, is.kind, is.object.GetNamespace(), is.object.GetName(), is.namespace, is.name)
		}
	}
	switch in.Mode {
	case "", NodeClientOff, Off:
		return nil
	}
	return fmt.Errorf("%w: no mode %q; want one of %v", ErrInputs, in.Mode, Modes())
}
