package topology_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/topology"
)

func infrastructure(controlPlane, infra configv1.TopologyMode, platform configv1.PlatformType) *configv1.Infrastructure {
	return &configv1.Infrastructure{Status: configv1.InfrastructureStatus{
		ControlPlaneTopology:   controlPlane,
		InfrastructureTopology: infra,
		PlatformStatus:         &configv1.PlatformStatus{Type: platform},
	}}
}

// TestReadingOf shows R-SNO-8.
func TestReadingOf(t *testing.T) {
	for _, test := range []struct {
		reported, mode configv1.TopologyMode
		empty, unknown bool
	}{
		{reported: ha, mode: ha},
		{reported: arbiter, mode: arbiter},
		{reported: sr, mode: sr},
		{reported: dual, mode: dual},
		{reported: external, mode: external},
		{reported: empty, mode: ha, empty: true},
		{reported: unknown, mode: ha, unknown: true},
		{reported: "singlereplica", mode: ha, unknown: true},
		{reported: "SingleReplica ", mode: ha, unknown: true},
	} {
		t.Run(string(test.reported), func(t *testing.T) {
			got := topology.ReadingOf(test.reported)
			if diff := cmp.Diff(topology.Reading{Mode: test.mode, Reported: test.reported}, got); diff != "" {
				t.Errorf("reading (-want +got):\n%s", diff)
			}
			if got.Empty() != test.empty || got.Unknown() != test.unknown {
				t.Errorf("Empty() = %v, Unknown() = %v, want %v, %v", got.Empty(), got.Unknown(), test.empty, test.unknown)
			}
		})
	}
}

// TestFromInfrastructure shows R-TOP-4.
func TestFromInfrastructure(t *testing.T) {
	for _, test := range []struct {
		name   string
		object *configv1.Infrastructure
		want   topology.Cluster
	}{
		{
			name:   "single node",
			object: infrastructure(sr, sr, configv1.NonePlatformType),
			want: topology.Cluster{
				ControlPlane:   topology.Reading{Mode: sr, Reported: sr},
				Infrastructure: topology.Reading{Mode: sr, Reported: sr},
				Platform:       configv1.NonePlatformType,
			},
		},
		{
			name:   "the two fields are not mixed up",
			object: infrastructure(external, sr, configv1.IBMCloudPlatformType),
			want: topology.Cluster{
				ControlPlane:   topology.Reading{Mode: external, Reported: external},
				Infrastructure: topology.Reading{Mode: sr, Reported: sr},
				Platform:       configv1.IBMCloudPlatformType,
			},
		},
		{
			name:   "empty object is highly available",
			object: &configv1.Infrastructure{},
			want: topology.Cluster{
				ControlPlane:   topology.Reading{Mode: ha},
				Infrastructure: topology.Reading{Mode: ha},
			},
		},
		{
			name:   "unknown values are highly available and kept",
			object: infrastructure(unknown, unknown, "Moon"),
			want: topology.Cluster{
				ControlPlane:   topology.Reading{Mode: ha, Reported: unknown},
				Infrastructure: topology.Reading{Mode: ha, Reported: unknown},
				Platform:       "Moon",
			},
		},
		{
			name: "platformStatus wins over the deprecated field",
			object: &configv1.Infrastructure{Status: configv1.InfrastructureStatus{
				Platform:       configv1.NonePlatformType,
				PlatformStatus: &configv1.PlatformStatus{Type: configv1.AWSPlatformType},
			}},
			want: topology.Cluster{
				ControlPlane:   topology.Reading{Mode: ha},
				Infrastructure: topology.Reading{Mode: ha},
				Platform:       configv1.AWSPlatformType,
			},
		},
		{
			name:   "deprecated platform without platformStatus",
			object: &configv1.Infrastructure{Status: configv1.InfrastructureStatus{Platform: configv1.GCPPlatformType}},
			want: topology.Cluster{
				ControlPlane:   topology.Reading{Mode: ha},
				Infrastructure: topology.Reading{Mode: ha},
				Platform:       configv1.GCPPlatformType,
			},
		},
		{
			name: "deprecated platform with an empty platformStatus",
			object: &configv1.Infrastructure{Status: configv1.InfrastructureStatus{
				Platform:       configv1.GCPPlatformType,
				PlatformStatus: &configv1.PlatformStatus{},
			}},
			want: topology.Cluster{
				ControlPlane:   topology.Reading{Mode: ha},
				Infrastructure: topology.Reading{Mode: ha},
				Platform:       configv1.GCPPlatformType,
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := topology.FromInfrastructure(test.object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("typed (-want +got):\n%s", diff)
			}

			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(test.object)
			if err != nil {
				t.Fatal(err)
			}
			got, err = topology.FromUnstructured(&unstructured.Unstructured{Object: content})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("untyped (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoInfrastructure(t *testing.T) {
	if _, err := topology.FromInfrastructure(nil); !errors.Is(err, topology.ErrNoInfrastructure) {
		t.Errorf("FromInfrastructure(nil) = %v, want ErrNoInfrastructure", err)
	}
	for name, object := range map[string]*unstructured.Unstructured{
		"nil":   nil,
		"empty": {},
	} {
		if _, err := topology.FromUnstructured(object); !errors.Is(err, topology.ErrNoInfrastructure) {
			t.Errorf("FromUnstructured(%s) = %v, want ErrNoInfrastructure", name, err)
		}
	}
}

func TestFromUnstructuredHighAvailabilityMode(t *testing.T) {
	reading := func(mode, reported configv1.TopologyMode) topology.Reading {
		return topology.Reading{Mode: mode, Reported: reported}
	}
	for _, test := range []struct {
		name     string
		status   string
		want     topology.Cluster
		wantMode topology.HighAvailabilityMode
	}{
		{
			name:     "None fills both",
			status:   `{"highAvailabilityMode":"None"}`,
			want:     topology.Cluster{ControlPlane: reading(sr, ""), Infrastructure: reading(sr, ""), Declared: "None"},
			wantMode: topology.HighAvailabilityNone,
		},
		{
			name:     "Full fills both",
			status:   `{"highAvailabilityMode":"Full"}`,
			want:     topology.Cluster{ControlPlane: reading(ha, ""), Infrastructure: reading(ha, ""), Declared: "Full"},
			wantMode: topology.HighAvailabilityFull,
		},
		{
			name:     "empty topology fields are filled like absent ones",
			status:   `{"highAvailabilityMode":"None","controlPlaneTopology":"","infrastructureTopology":null}`,
			want:     topology.Cluster{ControlPlane: reading(sr, ""), Infrastructure: reading(sr, ""), Declared: "None"},
			wantMode: topology.HighAvailabilityNone,
		},
		{
			name:     "only the empty one is filled",
			status:   `{"highAvailabilityMode":"None","infrastructureTopology":"HighlyAvailable"}`,
			want:     topology.Cluster{ControlPlane: reading(sr, ""), Infrastructure: reading(ha, ha), Declared: "None"},
			wantMode: topology.HighAvailabilityNone,
		},
		{
			name:     "a topology wins over None",
			status:   `{"highAvailabilityMode":"None","controlPlaneTopology":"HighlyAvailable","infrastructureTopology":"HighlyAvailable"}`,
			want:     topology.Cluster{ControlPlane: reading(ha, ha), Infrastructure: reading(ha, ha), Declared: "None"},
			wantMode: topology.HighAvailabilityFull,
		},
		{
			name:     "a topology wins over Full",
			status:   `{"highAvailabilityMode":"Full","controlPlaneTopology":"SingleReplica","infrastructureTopology":"SingleReplica"}`,
			want:     topology.Cluster{ControlPlane: reading(sr, sr), Infrastructure: reading(sr, sr), Declared: "Full"},
			wantMode: topology.HighAvailabilityNone,
		},
		{
			name:     "an unknown topology wins too",
			status:   `{"highAvailabilityMode":"None","controlPlaneTopology":"QuintupleReplica"}`,
			want:     topology.Cluster{ControlPlane: reading(ha, unknown), Infrastructure: reading(sr, ""), Declared: "None"},
			wantMode: topology.HighAvailabilityFull,
		},
		{
			name:     "an unknown mode fills nothing",
			status:   `{"highAvailabilityMode":"Some"}`,
			want:     topology.Cluster{ControlPlane: reading(ha, ""), Infrastructure: reading(ha, ""), Declared: "Some"},
			wantMode: topology.HighAvailabilityFull,
		},
		{
			name:     "no status at all",
			status:   `null`,
			want:     topology.Cluster{ControlPlane: reading(ha, ""), Infrastructure: reading(ha, "")},
			wantMode: topology.HighAvailabilityFull,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := map[string]any{}
			if err := json.Unmarshal([]byte(`{"apiVersion":"config.openshift.io/v1","kind":"Infrastructure","status":`+test.status+`}`), &object); err != nil {
				t.Fatal(err)
			}
			got, err := topology.FromUnstructured(&unstructured.Unstructured{Object: object})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("cluster (-want +got):\n%s", diff)
			}
			if mode := got.HighAvailability(); mode != test.wantMode {
				t.Errorf("HighAvailability() = %s, want %s", mode, test.wantMode)
			}
		})
	}
}

func TestFromUnstructuredErrors(t *testing.T) {
	for _, test := range []struct {
		name, object string
		want         error
		words        []string
	}{
		{"another kind", `{"kind":"Ingress"}`, topology.ErrNotInfrastructure, []string{`"Ingress"`}},
		{"kind is a number", `{"kind":1}`, topology.ErrFieldType, []string{"kind", "number"}},
		{"status is a string", `{"status":"fine"}`, topology.ErrFieldType, []string{"field status is a string", "object"}},
		{"control plane is a number", `{"status":{"controlPlaneTopology":1}}`, topology.ErrFieldType, []string{"status.controlPlaneTopology", "number"}},
		{"infrastructure is an array", `{"status":{"infrastructureTopology":[]}}`, topology.ErrFieldType, []string{"status.infrastructureTopology", "array"}},
		{"mode is a boolean", `{"status":{"highAvailabilityMode":false}}`, topology.ErrFieldType, []string{"status.highAvailabilityMode", "boolean"}},
		{"platform is an object", `{"status":{"platform":{}}}`, topology.ErrFieldType, []string{"status.platform is", "an object"}},
		{"platformStatus is a string", `{"status":{"platformStatus":"None"}}`, topology.ErrFieldType, []string{"status.platformStatus is a string"}},
		{"platform type is a number", `{"status":{"platformStatus":{"type":4.5}}}`, topology.ErrFieldType, []string{"status.platformStatus.type", "number"}},
		{"the first of several", `{"status":{"infrastructureTopology":2,"controlPlaneTopology":1}}`, topology.ErrFieldType, []string{"status.controlPlaneTopology"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := map[string]any{}
			if err := json.Unmarshal([]byte(test.object), &object); err != nil {
				t.Fatal(err)
			}
			got, err := topology.FromUnstructured(&unstructured.Unstructured{Object: object})
			if !errors.Is(err, test.want) {
				t.Fatalf("error = %v, want %v", err, test.want)
			}
			for _, word := range test.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("error %q does not say %q", err, word)
				}
			}
			if got != (topology.Cluster{}) {
				t.Errorf("an error came with a cluster: %+v", got)
			}
		})
	}
}

// Whatever the object, reading it must not panic, must give modes to act on, and must agree with the typed reader where
// the object fits the type.
func FuzzFromUnstructured(f *testing.F) {
	for _, example := range []string{
		`{}`,
		`null`,
		`{"kind":"Infrastructure","status":{"controlPlaneTopology":"SingleReplica","infrastructureTopology":"HighlyAvailable","platformStatus":{"type":"AWS"}}}`,
		`{"status":{"highAvailabilityMode":"None","platform":"None"}}`,
		`{"status":{"controlPlaneTopology":7,"platformStatus":null}}`,
		`{"status":{"controlPlaneTopology":"Ünknown","infrastructureTopology":""}}`,
		`{"status":[{}]}`,
	} {
		f.Add([]byte(example))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		object := map[string]any{}
		if json.Unmarshal(data, &object) != nil {
			return
		}
		got, err := topology.FromUnstructured(&unstructured.Unstructured{Object: object})
		if err != nil {
			return
		}
		for _, pool := range []topology.Pool{topology.ControlPlanePool, topology.WorkerPool} {
			if mode := got.Governing(pool); topology.ReadingOf(mode).Unknown() || mode == "" {
				t.Errorf("Governing(%s) = %q", pool, mode)
			}
		}
		if _, err := json.Marshal(got.Findings()); err != nil {
			t.Error(err)
		}
		if got.Declared != "" {
			return
		}
		typed := &configv1.Infrastructure{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed) != nil {
			return
		}
		want, err := topology.FromInfrastructure(typed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("typed and untyped differ (-typed +untyped):\n%s", diff)
		}
	})
}

// Every Cluster that was read is valid, whatever the object said; what nobody read is not, also where only one half of it is missing.
func TestClusterValidate(t *testing.T) {
	ok := topology.ReadingOf(configv1.SingleReplicaTopologyMode)
	for _, reported := range []configv1.TopologyMode{"", "Quantum", configv1.HighlyAvailableTopologyMode, configv1.ExternalTopologyMode} {
		infrastructure := &configv1.Infrastructure{Status: configv1.InfrastructureStatus{ControlPlaneTopology: reported, InfrastructureTopology: reported}}
		cluster, err := topology.FromInfrastructure(infrastructure)
		if err != nil {
			t.Fatal(err)
		}
		if err := cluster.Validate(); err != nil {
			t.Errorf("%q: %v", reported, err)
		}
	}
	for name, cluster := range map[string]topology.Cluster{
		"zero":              {},
		"platform only":     {Platform: configv1.NonePlatformType},
		"no infrastructure": {ControlPlane: ok},
		"no control plane":  {Infrastructure: ok},
		"a mode of nobody":  {ControlPlane: topology.Reading{Mode: "Quantum"}, Infrastructure: ok},
	} {
		if err := cluster.Validate(); !errors.Is(err, topology.ErrClusterNotRead) {
			t.Errorf("%s: %v, want %v", name, err, topology.ErrClusterNotRead)
		}
	}
}
