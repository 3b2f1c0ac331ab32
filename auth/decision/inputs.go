// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/json"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch/operand"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/unsupportedconfig"
	"github.com/solonode/sno/topology/workload"
)

// ErrInputs is returned for invalid inputs.
var ErrInputs = errors.New("invalid inputs")

// Inputs are the live objects that the decision needs, with managedFields. They are only read. nil means that an object
// does not exist.
type Inputs struct {
	Cluster                     *topology.Cluster // nil until an Infrastructure was read
	ControlPlaneNodes           []corev1.Node     // with the master role
	Authentication              *operatorv1.Authentication
	OAuthServer, OAuthAPIServer *appsv1.Deployment
	ClusterVersion              *configv1.ClusterVersion
	Override                    OverridePolicy
	// ForceConflicts takes fields of the Deployments from other owners, but never the override.
	ForceConflicts bool
}

// Validate returns an error for an object with the wrong name, a Cluster that was not read, and an unknown policy.
func (in Inputs) Validate() error {
	if in.Cluster != nil {
		if err := in.Cluster.Validate(); err != nil {
			return err
		}
	}
	if in.Authentication != nil && in.Authentication.Name != auth.ConfigName {
		return fmt.Errorf("%w: Authentication %q is not the operator's (%q)", ErrInputs, in.Authentication.Name, auth.ConfigName)
	}
	for _, o := range []target{in.oauthServer(), in.oauthAPIServer()} {
		if d := o.Live; d != nil && "Deployment "+d.Namespace+"/"+d.Name != o.Subject {
			return fmt.Errorf("%w: Deployment %s/%s is not %s", ErrInputs, d.Namespace, d.Name, o.Subject)
		}
	}
	return in.Override.Validate()
}

type target struct {
	operand.Deployment
	in Inputs
}

func (in Inputs) oauthServer() target {
	return in.target(auth.OAuthServerNamespace, auth.OAuthServerName, in.OAuthServer, auth.ShapeOAuthServer)
}

func (in Inputs) oauthAPIServer() target {
	return in.target(auth.OAuthAPIServerNamespace, auth.OAuthAPIServerName, in.OAuthAPIServer, auth.ShapeOAuthAPIServer)
}

// The subject has the namespace, because other namespaces have a Deployment apiserver as well.
func (in Inputs) target(
	namespace, name string, live *appsv1.Deployment, shape func(*appsv1.Deployment, topology.Cluster, int32) (*appsv1.Deployment, error),
) target {
	return target{operand.Deployment{
		Subject: "Deployment " + namespace + "/" + name, Owner: FieldOwner, Live: live, Cluster: in.Cluster, Force: in.ForceConflicts,
		Shape: func(d *appsv1.Deployment) (*appsv1.Deployment, error) {
			tolerations := workload.Tolerate(d.Spec.Template.Spec.Tolerations, topology.ControlPlanePool)
			return shape(d, *in.Cluster, auth.SchedulableControlPlaneNodes(in.ControlPlaneNodes, tolerations))
		},
	}, in}
}

type override struct {
	Inputs
	unsupportedconfig.Switch
	values     map[string]json.RawMessage // all top-level keys of unsupportedConfigOverrides
	unreadable error
}

func (in Inputs) override() override {
	o := override{Inputs: in}
	if in.Authentication != nil {
		o.Switch, o.values, o.unreadable = unsupportedconfig.Read(in.Authentication.Spec.UnsupportedConfigOverrides.Raw, auth.OverrideKey)
	}
	return o
}
