package etcdguard

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/topology"
)

// ErrInputs is returned for inputs that no cluster can have.
var ErrInputs = errors.New("invalid inputs")

// Presence is what is known about an object of which nothing but that matters.
type Presence int

const (
	// Unknown is the zero value: it was not read. Nothing is built on it.
	Unknown Presence = iota
	// Absent means that a read said that there is none.
	Absent
	// Present means that it is there.
	Present
)

// Inputs are what the decision needs: objects as they were read, with their managedFields. They are only read.
//
// Of an object, nil means that it is known not to exist: a caller whose read failed does not decide at all. Should one do so
// all the same, no guard is removed and none is loosened for it.
type Inputs struct {
	// Cluster is what topology.FromInfrastructure or topology.FromUnstructured read; nil while no Infrastructure was read.
	Cluster *topology.Cluster
	// Nodes are the nodes of the cluster, of which those with the role of a control-plane node or an arbiter count; nil while
	// they were not read, not nil and empty when there are none.
	Nodes []corev1.Node
	// Members is etcd's own list; nil while it was not read. Without it the guard may grow, but it never shrinks and never goes.
	Members []Member
	// ClusterVersion is clusterversions.config.openshift.io/version; nil on a cluster that has no cluster-version-operator.
	ClusterVersion *configv1.ClusterVersion
	// Etcd is etcds.operator.openshift.io/cluster; nil on a cluster that has no etcd operator.
	Etcd *operatorv1.Etcd
	// Deployment and Budget are the guard, by the name that static manifests and earlier operators gave it.
	Deployment *appsv1.Deployment
	Budget     *policyv1.PodDisruptionBudget
	// PodsBudget is the budget over the guards that today's etcd operators make.
	PodsBudget *policyv1.PodDisruptionBudget
	// ClientSecret and CABundle tell whether the certificates are there with which guards ask etcd.
	ClientSecret, CABundle Presence
	// Image is what the guards run: it must have curl and sleep. Empty keeps the image of the live guard, and leaves making a
	// guard where there is none to the cluster-version-operator.
	Image string
	// ForceConflicts takes contested fields of the guard from whoever owns them, and removes it on one node whoever wrote it.
	// Off unless a person asked for it. It never reaches the ClusterVersion.
	ForceConflicts bool
}

// Validate reports a Cluster that nobody read, an object that is not the one its place is for, and a list of members that etcd cannot have.
func (in Inputs) Validate() error {
	if in.Cluster != nil {
		if err := in.Cluster.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrInputs, err)
		}
	}
	for _, is := range []struct {
		object          metav1.Object
		kind, namespace string
		name            string
		absent          bool
	}{
		{in.ClusterVersion, "ClusterVersion", "", ClusterVersionName, in.ClusterVersion == nil},
		{in.Etcd, "Etcd", "", OperatorName, in.Etcd == nil},
		{in.Deployment, "Deployment", Namespace, GuardName, in.Deployment == nil},
		{in.Budget, "PodDisruptionBudget", Namespace, GuardName, in.Budget == nil},
		{in.PodsBudget, "PodDisruptionBudget", Namespace, PodsBudgetName, in.PodsBudget == nil},
	} {
		if !is.absent && (is.object.GetNamespace() != is.namespace || is.object.GetName() != is.name) {
			return fmt.Errorf("%w: %s %s/%s is not %s/%s", ErrInputs, is.kind, is.object.GetNamespace(), is.object.GetName(), is.namespace, is.name)
		}
	}
	if err := distinct(in.Members); err != nil {
		return fmt.Errorf("%w: %w", ErrInputs, err)
	}
	return nil
}

// mode is the topology that decides; Cluster must be there.
func (in Inputs) mode() configv1.TopologyMode { return modeOf(*in.Cluster) }
