// SPDX-License-Identifier: Apache-2.0

package decision

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

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/topology"
)

// ErrInputs is returned for inputs that no cluster can have.
var ErrInputs = errors.New("invalid inputs")

// Inputs are what Decide needs, with managedFields. A nil object does not exist; after a failed read Decide must not be
// called.
type Inputs struct {
	Cluster                *topology.Cluster  // nil while no Infrastructure was read
	Nodes                  []corev1.Node      // nil while not read; workers are ignored
	Members                []etcdguard.Member // nil while not read; then the guard is neither relaxed nor removed
	ClusterVersion         *configv1.ClusterVersion
	Etcd                   *operatorv1.Etcd
	Deployment             *appsv1.Deployment            // the guard of static manifests and of earlier operators
	Budget                 *policyv1.PodDisruptionBudget // its budget
	PodsBudget             *policyv1.PodDisruptionBudget // the budget over the guard pods of current etcd operators
	ClientSecret, CABundle bool                          // whether the objects with the certificates for etcd exist
	Image                  string                        // needs curl and sleep; empty keeps the image of the live guard, and no guard is created
	ForceConflicts         bool                          // overwrite fields of other managers, but no entry of the ClusterVersion
}

type object struct {
	metav1.Object
	kind, namespace, name string
}

func (in Inputs) objects() []object {
	return slices.DeleteFunc([]object{
		{in.ClusterVersion, "ClusterVersion", "", overrides.ClusterVersionName},
		{in.Etcd, "Etcd", "", etcdguard.OperatorName},
		{in.Deployment, "Deployment", etcdguard.Namespace, etcdguard.GuardName},
		{in.Budget, "PodDisruptionBudget", etcdguard.Namespace, etcdguard.GuardName},
		{in.PodsBudget, "PodDisruptionBudget", etcdguard.Namespace, etcdguard.PodsBudgetName},
	}, func(o object) bool { return reflect.ValueOf(o.Object).IsNil() })
}

// Validate returns ErrInputs for a Cluster that was not read, an object with a wrong name, or an impossible list of
// members.
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
	if err := etcdguard.ValidateMembers(in.Members); err != nil {
		return fmt.Errorf("%w: %w", ErrInputs, err)
	}
	return nil
}

func (in Inputs) mode() configv1.TopologyMode {
	return topology.ReadingOf(in.Cluster.ControlPlane.Mode).Mode
}

// needsGuards reports whether the topology needs guards.
func needsGuards(mode configv1.TopologyMode) bool { return etcdguard.ExpectedMembers(mode) > 1 }

// NeedsMembers reports whether the result of Decide can depend on the members of etcd.
func (in Inputs) NeedsMembers() bool {
	switch {
	case in.Cluster == nil || in.mode() == configv1.ExternalTopologyMode:
		return false
	case !needsGuards(in.mode()):
		return in.Deployment != nil || in.Budget != nil
	}
	return !in.operatorHasGuards()
}
