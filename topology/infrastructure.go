// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

var (
	// ErrNoInfrastructure is returned if there is no Infrastructure object. Keep the last Cluster.
	ErrNoInfrastructure = errors.New("no Infrastructure object: read infrastructures.config.openshift.io/cluster first")
	// ErrNotInfrastructure is returned for an object of another kind.
	ErrNotInfrastructure = errors.New("not an Infrastructure object")
	// ErrClusterNotRead is returned for a Cluster that was not read, such as the zero Cluster.
	ErrClusterNotRead = errors.New("no topology: read the Cluster with topology.FromInfrastructure")
	// ErrFieldType is returned if a field of an untyped object has the wrong JSON type.
	ErrFieldType = errors.New("wrong JSON type")
)

// Paths of the fields.
const (
	FieldControlPlaneTopology   = "status.controlPlaneTopology"
	FieldInfrastructureTopology = "status.infrastructureTopology"
	FieldHighAvailabilityMode   = "status.highAvailabilityMode"
)

// Reading is a topology field: the mode to use, which openshift/api defines, and the reported value.
type Reading struct{ Mode, Reported configv1.TopologyMode }

// ReadingOf returns the Reading of a value. Empty and unknown values are HighlyAvailable (R-SNO-8, U-TOP-8).
func ReadingOf(reported configv1.TopologyMode) Reading {
	return Reading{Mode: effective(reported), Reported: reported}
}

// empty reports whether the value is absent or empty.
func (r Reading) empty() bool { return r.Reported == "" }

// unknown reports whether openshift/api does not define the value.
func (r Reading) unknown() bool { return !r.empty() && !known(r.Reported) }

// Cluster is the topology of a cluster. It is comparable. The zero Cluster behaves as HighlyAvailable.
type Cluster struct {
	ControlPlane   Reading               // of the status: a cluster may not have reached its spec
	Infrastructure Reading               // of the status
	Platform       configv1.PlatformType // can be empty or unknown
	// Declared is status.highAvailabilityMode of an untyped object, for topologies that are empty.
	Declared HighAvailabilityMode
}

// Validate returns ErrClusterNotRead for a Cluster that was not read.
func (c Cluster) Validate() error {
	for _, reading := range []Reading{c.ControlPlane, c.Infrastructure} {
		if !known(reading.Mode) {
			return fmt.Errorf("%w: mode %q", ErrClusterNotRead, reading.Mode)
		}
	}
	return nil
}

// FromInfrastructure reads the typed object (R-TOP-4, U-TOP-1). It returns ErrNoInfrastructure for nil.
func FromInfrastructure(infrastructure *configv1.Infrastructure) (Cluster, error) {
	if infrastructure == nil {
		return Cluster{}, ErrNoInfrastructure
	}
	status := &infrastructure.Status
	cluster := Cluster{
		ControlPlane:   ReadingOf(status.ControlPlaneTopology),
		Infrastructure: ReadingOf(status.InfrastructureTopology),
		Platform:       status.Platform, //nolint:staticcheck // old clusters have only the deprecated field
	}
	if status.PlatformStatus != nil && status.PlatformStatus.Type != "" {
		cluster.Platform = status.PlatformStatus.Type
	}
	return cluster, nil
}

// FromUnstructured reads an untyped object, such as a file of a must-gather, with status.highAvailabilityMode
// (U-TOP-2): None makes empty topology fields SingleReplica, Full makes them HighlyAvailable. null counts as absent.
// Errors: ErrNoInfrastructure, ErrNotInfrastructure, and ErrFieldType with the path.
func FromUnstructured(object *unstructured.Unstructured) (Cluster, error) {
	if object == nil || len(object.Object) == 0 {
		return Cluster{}, ErrNoInfrastructure
	}
	text, err := json.Marshal(object.Object)
	if err != nil {
		return Cluster{}, fmt.Errorf("encoding an Infrastructure object: %w", err)
	}
	var read struct {
		Kind   string `json:"kind"`
		Status struct {
			ControlPlane   configv1.TopologyMode `json:"controlPlaneTopology"`
			Infrastructure configv1.TopologyMode `json:"infrastructureTopology"`
			Declared       HighAvailabilityMode  `json:"highAvailabilityMode"`
			Platform       configv1.PlatformType `json:"platform"`
			PlatformStatus struct {
				Type configv1.PlatformType `json:"type"`
			} `json:"platformStatus"`
		} `json:"status"`
	}
	err = utiljson.Unmarshal(text, &read)
	var wrong *json.UnmarshalTypeError
	switch {
	case read.Kind != "" && read.Kind != "Infrastructure":
		return Cluster{}, fmt.Errorf("%w: kind is %q: pass infrastructures.config.openshift.io/cluster", ErrNotInfrastructure, read.Kind)
	case errors.As(err, &wrong):
		return Cluster{}, fmt.Errorf("%w: Infrastructure field %s is of type %s", ErrFieldType, wrong.Field, wrong.Value)
	case err != nil:
		return Cluster{}, fmt.Errorf("decoding an Infrastructure object: %w", err)
	}

	cluster := Cluster{
		ControlPlane:   ReadingOf(read.Status.ControlPlane),
		Infrastructure: ReadingOf(read.Status.Infrastructure),
		Platform:       cmp.Or(read.Status.PlatformStatus.Type, read.Status.Platform),
		Declared:       read.Status.Declared,
	}
	for _, reading := range []*Reading{&cluster.ControlPlane, &cluster.Infrastructure} {
		if reading.empty() {
			reading.Mode = cmp.Or(declaredTopologies[cluster.Declared], reading.Mode)
		}
	}
	return cluster, nil
}

func known(mode configv1.TopologyMode) bool {
	switch mode {
	case configv1.HighlyAvailableTopologyMode,
		configv1.HighlyAvailableArbiterMode,
		configv1.SingleReplicaTopologyMode,
		configv1.DualReplicaTopologyMode,
		configv1.ExternalTopologyMode:
		return true
	default:
		return false
	}
}

func effective(mode configv1.TopologyMode) configv1.TopologyMode {
	if known(mode) {
		return mode
	}
	return configv1.HighlyAvailableTopologyMode
}
