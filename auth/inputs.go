package auth

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/patch/workload"
	"github.com/solonode/sno/topology"
)

// ErrInputs is returned for inputs that no cluster can have.
var ErrInputs = errors.New("invalid inputs")

// Inputs are the objects that the decision needs. They are only read.
type Inputs struct {
	// Cluster is what topology.FromInfrastructure or topology.FromUnstructured read; nil while no Infrastructure was read.
	Cluster *topology.Cluster
	// ControlPlaneNodes are the nodes with the master role, of which SchedulableControlPlaneNodes counts those that matter.
	// While there is none, the modes that follow the number wait: no cluster is without one for long.
	ControlPlaneNodes []corev1.Node
	// Authentication is the live authentications.operator.openshift.io/cluster, with its managedFields; nil when there is none.
	Authentication *operatorv1.Authentication
	// OAuthServer and OAuthAPIServer are the live Deployments, with their managedFields; nil when there are none.
	OAuthServer, OAuthAPIServer *appsv1.Deployment
	// ClusterVersion is the live clusterversions.config.openshift.io/version; nil when there is none. It tells the release,
	// and NeedOfCluster whether the release needs the override.
	ClusterVersion *configv1.ClusterVersion
	// Override says when the override is set; empty is OverrideAuto. A set override blocks upgrades.
	Override OverridePolicy
	// ForceConflicts takes contested fields of the Deployments from whoever owns them. Off unless a person asked for it. It
	// does not reach unsupportedConfigOverrides, where what others wrote is always theirs.
	ForceConflicts bool
}

// Validate reports inputs that are not what they should be: a Cluster that nobody read, other objects than those that are patched, or a
// policy that is none.
func (in Inputs) Validate() error {
	if in.Cluster != nil {
		if err := in.Cluster.Validate(); err != nil {
			return err //nolint:wrapcheck // it says what to do
		}
	}
	if in.Authentication != nil && in.Authentication.Name != ConfigName {
		return fmt.Errorf("%w: Authentication %q is not the operator's (%q)", ErrInputs, in.Authentication.Name, ConfigName)
	}
	for _, o := range []operand{oauthServer, oauthAPIServer} {
		if d := o.live(in); d != nil && (d.Namespace != o.namespace || d.Name != o.name) {
			return fmt.Errorf("%w: Deployment %s/%s is not %s/%s", ErrInputs, d.Namespace, d.Name, o.namespace, o.name)
		}
	}
	if in.Override != "" {
		if _, err := ParseOverridePolicy(string(in.Override)); err != nil {
			return fmt.Errorf("%w: %w", ErrInputs, err)
		}
	}
	return nil
}

// host is what the shaping functions need to know for this Deployment; it and the Cluster must be there.
func (o operand) host(in Inputs) (Host, error) {
	tolerations := workload.Tolerate(o.live(in).Spec.Template.Spec.Tolerations, topology.ControlPlanePool)
	return NewHost(*in.Cluster, SchedulableControlPlaneNodes(in.ControlPlaneNodes, tolerations))
}

// shaped is the Deployment as the topology asks for it.
func (o operand) shaped(in Inputs) (*appsv1.Deployment, error) {
	host, err := o.host(in)
	if err != nil {
		return nil, err
	}
	return o.shape(o.live(in), host)
}

// operand is one of the two Deployments.
type operand struct {
	namespace, name string
	live            func(Inputs) *appsv1.Deployment
	shape           func(*appsv1.Deployment, Host) (*appsv1.Deployment, error)
}

// subject is how messages call it: with its namespace, since a Deployment apiserver is in other namespaces too.
func (o operand) subject() string { return "Deployment " + o.namespace + "/" + o.name }

var (
	oauthServer = operand{OAuthServerNamespace, OAuthServerName,
		func(in Inputs) *appsv1.Deployment { return in.OAuthServer }, ShapeOAuthServer}
	oauthAPIServer = operand{OAuthAPIServerNamespace, OAuthAPIServerName,
		func(in Inputs) *appsv1.Deployment { return in.OAuthAPIServer }, ShapeOAuthAPIServer}
)

func deleting(object metav1.Object) bool { return object.GetDeletionTimestamp() != nil }
