package etcdguard

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/topology"
)

// ErrInputs is returned for inputs that no cluster can have.
var ErrInputs = errors.New("invalid inputs")

// Inputs are the objects that Decide reads, with their managedFields. A nil object does not exist: a caller whose read failed must not decide.
type Inputs struct {
	Cluster                *topology.Cluster // nil while no Infrastructure was read
	Nodes                  []corev1.Node     // nil while not read; other nodes than control-plane nodes and arbiters are ignored
	Members                []Member          // etcd's own list; nil while not read, and then the guard is neither relaxed nor removed
	ClusterVersion         *configv1.ClusterVersion
	Etcd                   *operatorv1.Etcd
	Deployment             *appsv1.Deployment            // the guard of static manifests and of earlier operators
	Budget                 *policyv1.PodDisruptionBudget // its budget
	PodsBudget             *policyv1.PodDisruptionBudget // the budget over the guard pods of today's etcd operators
	ClientSecret, CABundle bool                          // whether the objects with the certificates for etcd exist
	Image                  string                        // with curl and sleep; without it the image of the live guard is kept, and no guard is created
	ForceConflicts         bool                          // take contested fields of the guard, but never an entry of the ClusterVersion
}

type object struct {
	metav1.Object
	kind, namespace, name string
}

// objects lists the objects that exist, each with the name that it must have.
func (in Inputs) objects() []object {
	return slices.DeleteFunc([]object{
		{in.ClusterVersion, "ClusterVersion", "", overrides.ClusterVersionName},
		{in.Etcd, "Etcd", "", OperatorName},
		{in.Deployment, "Deployment", Namespace, GuardName},
		{in.Budget, "PodDisruptionBudget", Namespace, GuardName},
		{in.PodsBudget, "PodDisruptionBudget", Namespace, PodsBudgetName},
	}, func(o object) bool { return reflect.ValueOf(o.Object).IsNil() })
}

// Validate reports a Cluster that was not read, an object with the wrong name, and a list of members that etcd cannot have, as an ErrInputs.
func (in Inputs) Validate() error {
	if in.Cluster != nil {
		if err := in.Cluster.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrInputs, err)
		}
	}
	for _, o := range in.objects() {
		if o.GetNamespace() != o.namespace || o.GetName() != o.name {
			return fmt.Errorf("%w: %s %s/%s is not %s/%s", ErrInputs, o.kind, o.GetNamespace(), o.GetName(), o.namespace, o.name)
		}
	}
	if err := distinct(in.Members); err != nil {
		return fmt.Errorf("%w: %w", ErrInputs, err)
	}
	return nil
}

func (in Inputs) mode() configv1.TopologyMode { return modeOf(*in.Cluster) }

// NeedsMembers reports whether the members of etcd can make a difference to Decide.
func (in Inputs) NeedsMembers() bool {
	switch {
	case in.Cluster == nil || in.mode() == configv1.ExternalTopologyMode:
		return false
	case !guarded(in.mode()):
		return in.Deployment != nil || in.Budget != nil
	}
	return !in.operatorGuards()
}
