package topology

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var (
	// ErrNoInfrastructure means that there was no Infrastructure object to read: nil, or without content. It is not a
	// topology. Keep the Cluster of the last successful read.
	ErrNoInfrastructure = errors.New("no Infrastructure object: read infrastructures.config.openshift.io/cluster first")

	// ErrNotInfrastructure means that an untyped object says that it is of another kind.
	ErrNotInfrastructure = errors.New("not an Infrastructure object")

	// ErrClusterNotRead means that a Cluster was not read from an Infrastructure object, such as the zero Cluster.
	ErrClusterNotRead = errors.New("no topology: read the Cluster with topology.FromInfrastructure")

	// ErrFieldType means that a field of an untyped object holds a JSON value of the wrong type. The error that wraps it
	// names the field.
	ErrFieldType = errors.New("wrong JSON type")
)

// The fields that are read, as Findings and errors name them.
const (
	FieldControlPlaneTopology   = "status.controlPlaneTopology"
	FieldInfrastructureTopology = "status.infrastructureTopology"
	FieldHighAvailabilityMode   = "status.highAvailabilityMode"
)

// Reading is one topology field: what to act on, and what the object said.
type Reading struct {
	// Mode is what to act on. A Reading made by this package holds one of the five modes of openshift/api here.
	Mode configv1.TopologyMode
	// Reported is the field's value, unchanged: empty if the field was absent or empty.
	Reported configv1.TopologyMode
}

// ReadingOf makes a Reading of a field's value: empty and unknown values are acted on as HighlyAvailable. The first is the
// API's default for both fields, the second is what the enhancement of the API asks for (R-SNO-8, U-TOP-8).
func ReadingOf(reported configv1.TopologyMode) Reading {
	return Reading{Mode: effective(reported), Reported: reported}
}

// Empty says whether the field was absent or empty. Mode is then HighlyAvailable, or what status.highAvailabilityMode asks
// for if the object carried it.
func (r Reading) Empty() bool { return r.Reported == "" }

// Unknown says whether the field held a value that openshift/api does not define.
func (r Reading) Unknown() bool { return !r.Empty() && !known(r.Reported) }

// Cluster is what the Infrastructure object says about the shape of a cluster. It is a comparable value: two Clusters are
// equal when the object said the same, so a watcher can use == to see whether anything changed. The zero Cluster acts as
// HighlyAvailable everywhere.
type Cluster struct {
	// ControlPlane is status.controlPlaneTopology. It governs what runs on control-plane nodes. spec.controlPlaneTopology is
	// a wish that a cluster may not have reached yet, so it is not read.
	ControlPlane Reading
	// Infrastructure is status.infrastructureTopology. It governs what runs on workers.
	Infrastructure Reading
	// Platform is status.platformStatus.type, else the deprecated status.platform. It is passed on as it is, also when it
	// is empty or not a name that this package knows: both act as None where a platform matters.
	Platform configv1.PlatformType
	// Declared is status.highAvailabilityMode of an untyped object, as it is: empty if absent, which it is on every cluster
	// whose API never had the field. HighAvailability does not use it: what counts are the two topologies, which
	// FromUnstructured fills from Declared where they are empty. Findings says when the two sides contradict each other.
	Declared HighAvailabilityMode
}

// Validate returns ErrClusterNotRead, with the mode, for a Cluster that neither FromInfrastructure nor FromUnstructured can have made: they, like
// ReadingOf, read every value as one of the five modes. The zero Cluster acts as HighlyAvailable, which is no answer where somebody forgot
// to read the object.
func (c Cluster) Validate() error {
	for _, reading := range []Reading{c.ControlPlane, c.Infrastructure} {
		if !known(reading.Mode) {
			return fmt.Errorf("%w: mode %q", ErrClusterNotRead, reading.Mode)
		}
	}
	return nil
}

// FromInfrastructure reads the typed object (R-TOP-4, U-TOP-1). nil is ErrNoInfrastructure; nothing else is an error, because every string
// has a meaning here. It does not allocate.
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

// FromUnstructured reads an untyped object, such as a file of a must-gather or an object of a prototype's own CRD. It reads
// the fields that FromInfrastructure reads and, besides, status.highAvailabilityMode (U-TOP-2): None makes every topology
// field that is absent or empty SingleReplica, Full makes it HighlyAvailable. A topology field that is not empty always
// wins, even with an unknown value; Findings reports a contradiction.
//
// Errors: ErrNoInfrastructure for nil or an object without content, ErrNotInfrastructure if the object names another kind,
// ErrFieldType, with the field's path, for a value of the wrong JSON type. A JSON null counts as absent.
func FromUnstructured(object *unstructured.Unstructured) (Cluster, error) {
	if object == nil || len(object.Object) == 0 {
		return Cluster{}, ErrNoInfrastructure
	}
	if kind, err := stringAt(object.Object, "kind"); err != nil {
		return Cluster{}, err
	} else if kind != "" && kind != "Infrastructure" {
		return Cluster{}, fmt.Errorf("%w: kind is %q: pass infrastructures.config.openshift.io/cluster", ErrNotInfrastructure, kind)
	}

	var firstError error
	read := func(path ...string) string {
		value, err := stringAt(object.Object, path...)
		if err != nil && firstError == nil {
			firstError = err
		}
		return value
	}
	controlPlane := read("status", "controlPlaneTopology")
	infrastructure := read("status", "infrastructureTopology")
	declared := read("status", "highAvailabilityMode")
	platform := read("status", "platformStatus", "type")
	deprecatedPlatform := read("status", "platform")
	if firstError != nil {
		return Cluster{}, firstError
	}

	cluster := Cluster{
		ControlPlane:   ReadingOf(configv1.TopologyMode(controlPlane)),
		Infrastructure: ReadingOf(configv1.TopologyMode(infrastructure)),
		Platform:       configv1.PlatformType(platform),
		Declared:       HighAvailabilityMode(declared),
	}
	if cluster.Platform == "" {
		cluster.Platform = configv1.PlatformType(deprecatedPlatform)
	}
	if mode, ok := cluster.Declared.topology(); ok {
		if cluster.ControlPlane.Empty() {
			cluster.ControlPlane.Mode = mode
		}
		if cluster.Infrastructure.Empty() {
			cluster.Infrastructure.Mode = mode
		}
	}
	return cluster, nil
}

// stringAt walks down path. Absent and null are the empty string. The helpers of apimachinery's unstructured package are
// not used because they call null a type error and name Go types instead of JSON types.
func stringAt(object map[string]any, path ...string) (string, error) {
	name := ""
	for i, key := range path {
		if i > 0 {
			name += "."
		}
		name += key
		value := object[key]
		if value == nil {
			return "", nil
		}
		if i == len(path)-1 {
			text, ok := value.(string)
			if !ok {
				return "", fmt.Errorf("%w: Infrastructure field %s is %s, want a string", ErrFieldType, name, jsonType(value))
			}
			return text, nil
		}
		next, ok := value.(map[string]any)
		if !ok {
			return "", fmt.Errorf("%w: Infrastructure field %s is %s, want an object", ErrFieldType, name, jsonType(value))
		}
		object = next
	}
	return "", nil
}

func jsonType(value any) string {
	switch value.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	case int, int32, int64, float32, float64:
		return "a number"
	default:
		return fmt.Sprintf("a Go %T", value)
	}
}

// known says whether openshift/api defines the mode.
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

// effective is the one place that says what empty and unknown modes are acted on as.
func effective(mode configv1.TopologyMode) configv1.TopologyMode {
	if known(mode) {
		return mode
	}
	return configv1.HighlyAvailableTopologyMode
}
