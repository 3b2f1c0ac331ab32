// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/solonode/sno/topology"
)

var (
	// ErrPlacement is returned for an unknown placement source.
	ErrPlacement = errors.New("unknown placement source")
	// ErrInputs is returned for an object with another name.
	ErrInputs = errors.New("invalid inputs")
)

// PlacementSource is the signal that decides where the router belongs: the infrastructure topology (R-ING-5), or
// status.defaultPlacement of ingresses.config.openshift.io/cluster, as in OpenShift (U-TOP-7).
type PlacementSource string

const (
	// PlacementFromTopology pins if the infrastructure topology is SingleReplica.
	PlacementFromTopology PlacementSource = "topology"
	// PlacementFromDefaultPlacement pins if defaultPlacement is ControlPlane. If it is empty, the topology decides.
	PlacementFromDefaultPlacement PlacementSource = "defaultPlacement"
)

// ParsePlacementSource parses a flag's value; the empty string is PlacementFromTopology. Error: ErrPlacement.
func ParsePlacementSource(text string) (PlacementSource, error) {
	switch source := PlacementSource(text); source {
	case "":
		return PlacementFromTopology, nil
	case PlacementFromTopology, PlacementFromDefaultPlacement:
		return source, nil
	}
	return "", fmt.Errorf("%w: %q; want %q or %q", ErrPlacement, text, PlacementFromTopology, PlacementFromDefaultPlacement)
}

// Inputs are the live objects that the decision needs. They are only read. nil means that an object does not exist.
type Inputs struct {
	Cluster           *topology.Cluster // nil until an Infrastructure was read
	Ingress           *configv1.Ingress
	IngressController *operatorv1.IngressController // with its managedFields
	Router            *appsv1.Deployment
	// Placement decides between disagreeing signals; empty is PlacementFromTopology.
	Placement PlacementSource
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
	if _, err := ParsePlacementSource(string(in.Placement)); err != nil {
		return err
	}
	if ic := in.IngressController; ic != nil && (ic.Namespace != IngressControllerNamespace || ic.Name != IngressControllerName) {
		return fmt.Errorf("%w: IngressController %s/%s is not the default one (%s/%s)", ErrInputs,
			ic.Namespace, ic.Name, IngressControllerNamespace, IngressControllerName)
	}
	if in.Ingress != nil && in.Ingress.Name != ConfigName {
		return fmt.Errorf("%w: Ingress %q is not the cluster's (%q)", ErrInputs, in.Ingress.Name, ConfigName)
	}
	return nil
}

func (in Inputs) defaultPlacement() configv1.DefaultPlacement {
	if in.Ingress == nil {
		return ""
	}
	return in.Ingress.Status.DefaultPlacement
}
