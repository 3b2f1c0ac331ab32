// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/topology"
)

// ErrInputs is returned for an object with another name.
var ErrInputs = errors.New("invalid inputs")

// Inputs are the live objects that the decision needs. They are only read. nil means that an object does not exist.
type Inputs struct {
	Cluster           *topology.Cluster // nil until an Infrastructure was read
	Ingress           *configv1.Ingress
	IngressController *operatorv1.IngressController // with its managedFields
	Router            *appsv1.Deployment
	// Placement decides between disagreeing signals; empty is PlacementFromTopology.
	Placement ingress.PlacementSource
	// ForceConflicts takes fields from other managers.
	ForceConflicts bool
}

// Validate returns topology.ErrClusterNotRead, ErrPlacement or ErrInputs for invalid inputs.
func (in Inputs) Validate() error {
	if in.Cluster != nil {
		if err := in.Cluster.Validate(); err != nil {
			return err
		}
	}
	if _, err := ingress.ParsePlacementSource(string(in.Placement)); err != nil {
		return err
	}
	if ic := in.IngressController; ic != nil && (ic.Namespace != ingress.IngressControllerNamespace || ic.Name != ingress.IngressControllerName) {
		return fmt.Errorf("%w: IngressController %s/%s is not the default one (%s/%s)", ErrInputs,
			ic.Namespace, ic.Name, ingress.IngressControllerNamespace, ingress.IngressControllerName)
	}
	if in.Ingress != nil && in.Ingress.Name != ingress.ConfigName {
		return fmt.Errorf("%w: Ingress %q is not the cluster's (%q)", ErrInputs, in.Ingress.Name, ingress.ConfigName)
	}
	return nil
}

func (in Inputs) defaultPlacement() configv1.DefaultPlacement {
	if in.Ingress == nil {
		return ""
	}
	return in.Ingress.Status.DefaultPlacement
}
