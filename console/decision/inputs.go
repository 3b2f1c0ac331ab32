// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch/operand"
	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/topology"
)

// ErrInputs is returned for invalid inputs.
var ErrInputs = errors.New("invalid inputs")

// Inputs are the live objects that the decision needs, with managedFields. They are only read. nil means that an object
// does not exist.
type Inputs struct {
	Cluster        *topology.Cluster // nil until an Infrastructure was read
	Operator       *operatorv1.Console
	ClusterVersion *configv1.ClusterVersion

	Console, Downloads             *appsv1.Deployment
	ConsoleBudget, DownloadsBudget *policyv1.PodDisruptionBudget
	// ForceConflicts takes fields of the Deployments from other owners, but never an entry of the ClusterVersion.
	ForceConflicts bool
}

// Validate returns an error for an object with the wrong name, and for a Cluster that was not read.
func (in Inputs) Validate() error {
	if in.Cluster != nil {
		if err := in.Cluster.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrInputs, err)
		}
	}
	for _, is := range []struct {
		object                metav1.Object
		kind, namespace, name string
		absent                bool
	}{
		{in.Operator, "Console", "", console.OperatorName, in.Operator == nil},
		{in.ClusterVersion, "ClusterVersion", "", overrides.ClusterVersionName, in.ClusterVersion == nil},
		{in.Console, "Deployment", console.Namespace, console.ConsoleName, in.Console == nil},
		{in.Downloads, "Deployment", console.Namespace, console.DownloadsName, in.Downloads == nil},
		{in.ConsoleBudget, "PodDisruptionBudget", console.Namespace, console.ConsoleName, in.ConsoleBudget == nil},
		{in.DownloadsBudget, "PodDisruptionBudget", console.Namespace, console.DownloadsName, in.DownloadsBudget == nil},
	} {
		if !is.absent && (is.object.GetNamespace() != is.namespace || is.object.GetName() != is.name) {
			return fmt.Errorf("%w: %s %s/%s is not %s/%s", ErrInputs, is.kind, is.object.GetNamespace(), is.object.GetName(), is.namespace, is.name)
		}
	}
	return nil
}

type target struct {
	operand.Deployment
	in        Inputs
	budget    *policyv1.PodDisruptionBudget
	takenOver bool // the cluster-version-operator may manage it, as older releases do with downloads
}

func (in Inputs) console() target {
	return target{in.target(console.ConsoleName, in.Console), in, in.ConsoleBudget, false}
}

func (in Inputs) downloads() target {
	return target{in.target(console.DownloadsName, in.Downloads), in, in.DownloadsBudget, true}
}

func (in Inputs) target(name string, live *appsv1.Deployment) operand.Deployment {
	return operand.Deployment{
		Subject: subjectOf(name), Owner: FieldOwner, Live: live, Cluster: in.Cluster, Force: in.ForceConflicts,
		Shape: func(d *appsv1.Deployment) (*appsv1.Deployment, error) { return console.ShapeDeployment(d, *in.Cluster) },
	}
}

func (o target) claim() (overrides.Claim, error) {
	return overrides.Read(o.in.ClusterVersion, FieldOwner, Override())
}

// needsOverride reports whether the cluster-version-operator may manage the Deployment.
func (o target) needsOverride() bool {
	return o.takenOver && o.in.ClusterVersion != nil && (ownership.ManagedBy(o.Live, overrides.ClusterVersionOperator) ||
		len(o.Live.ManagedFields) == 0 || ownership.Owns(o.in.ClusterVersion, FieldOwner))
}

// missing reports whether there is no Deployment, or it is being deleted.
func (o target) missing() bool { return o.Live == nil || o.Live.DeletionTimestamp != nil }

func (o target) owned() bool { return ownership.Owns(o.Live, FieldOwner) }
