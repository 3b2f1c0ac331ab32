// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/topology"
)

func reading(mode, reported configv1.TopologyMode) topology.Reading {
	return topology.Reading{Mode: mode, Reported: reported}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

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
		got := topology.ReadingOf(test.reported)
		if got != reading(test.mode, test.reported) || got.Empty() != test.empty || got.Unknown() != test.unknown {
			t.Errorf("%q: %+v, empty %v, unknown %v, want %+v", test.reported, got, got.Empty(), got.Unknown(), test)
		}
	}
}

// TestFromInfrastructure shows R-TOP-4.
func TestFromInfrastructure(t *testing.T) {
	const none, aws, gcp = configv1.NonePlatformType, configv1.AWSPlatformType, configv1.GCPPlatformType
	platforms := func(deprecated configv1.PlatformType, status *configv1.PlatformStatus) *configv1.Infrastructure {
		return &configv1.Infrastructure{Status: configv1.InfrastructureStatus{Platform: deprecated, PlatformStatus: status}}
	}
	absent := reading(ha, "")
	for name, test := range map[string]struct {
		object                       *configv1.Infrastructure
		controlPlane, infrastructure topology.Reading
		platform                     configv1.PlatformType
	}{
		"single node":                                   {infrastructure(sr, sr, none), reading(sr, sr), reading(sr, sr), none},
		"the two fields are not mixed up":               {infrastructure(external, sr, gcp), reading(external, external), reading(sr, sr), gcp},
		"empty object is highly available":              {&configv1.Infrastructure{}, absent, absent, ""},
		"unknown values are highly available and kept":  {infrastructure(unknown, unknown, "Moon"), reading(ha, unknown), reading(ha, unknown), "Moon"},
		"platformStatus wins over the deprecated field": {platforms(none, &configv1.PlatformStatus{Type: aws}), absent, absent, aws},
		"deprecated platform without platformStatus":    {platforms(gcp, nil), absent, absent, gcp},
		"deprecated platform with empty platformStatus": {platforms(gcp, &configv1.PlatformStatus{}), absent, absent, gcp},
	} {
		t.Run(name, func(t *testing.T) {
			want := topology.Cluster{ControlPlane: test.controlPlane, Infrastructure: test.infrastructure, Platform: test.platform}
			got, err := topology.FromInfrastructure(test.object)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("typed: %v (-want +got):\n%s", err, diff)
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(test.object)
			if err != nil {
				t.Fatal(err)
			}
			got, err = topology.FromUnstructured(&unstructured.Unstructured{Object: content})
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("untyped: %v (-want +got):\n%s", err, diff)
			}
			if err := got.Validate(); err != nil {
				t.Errorf("a Cluster that was read is not valid: %v", err)
			}
		})
	}
}

func TestFromUnstructuredHighAvailabilityMode(t *testing.T) {
	const none, full = topology.HighAvailabilityNone, topology.HighAvailabilityFull
	for name, test := range map[string]struct {
		status                       string
		controlPlane, infrastructure topology.Reading
		declared, mode               topology.HighAvailabilityMode
	}{
		"None fills both": {`{"highAvailabilityMode":"None"}`, reading(sr, ""), reading(sr, ""), none, none},
		"Full fills both": {`{"highAvailabilityMode":"Full"}`, reading(ha, ""), reading(ha, ""), full, full},
		"empty topology fields are filled like absent ones": {`{"highAvailabilityMode":"None","controlPlaneTopology":"","infrastructureTopology":null}`,
			reading(sr, ""), reading(sr, ""), none, none},
		"only the empty one is filled": {`{"highAvailabilityMode":"None","infrastructureTopology":"HighlyAvailable"}`,
			reading(sr, ""), reading(ha, ha), none, none},
		"a topology wins over None": {`{"highAvailabilityMode":"None","controlPlaneTopology":"HighlyAvailable","infrastructureTopology":"HighlyAvailable"}`,
			reading(ha, ha), reading(ha, ha), none, full},
		"a topology wins over Full": {`{"highAvailabilityMode":"Full","controlPlaneTopology":"SingleReplica","infrastructureTopology":"SingleReplica"}`,
			reading(sr, sr), reading(sr, sr), full, none},
		"an unknown topology wins too": {`{"highAvailabilityMode":"None","controlPlaneTopology":"QuintupleReplica"}`,
			reading(ha, unknown), reading(sr, ""), none, full},
		"an unknown mode fills nothing": {`{"highAvailabilityMode":"Some"}`, reading(ha, ""), reading(ha, ""), "Some", full},
		"no status at all":              {`null`, reading(ha, ""), reading(ha, ""), "", full},
	} {
		t.Run(name, func(t *testing.T) {
			u := object(t, `{"apiVersion":"config.openshift.io/v1","kind":"Infrastructure","status":`+test.status+`}`)
			want := topology.Cluster{ControlPlane: test.controlPlane, Infrastructure: test.infrastructure, Declared: test.declared}
			got, err := topology.FromUnstructured(u)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("cluster: %v (-want +got):\n%s", err, diff)
			}
			if mode := got.HighAvailability(); mode != test.mode {
				t.Errorf("HighAvailability() = %s, want %s", mode, test.mode)
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	wrongType := topology.ErrFieldType
	_, typed := topology.FromInfrastructure(nil)
	_, untyped := topology.FromUnstructured(nil)
	if !errors.Is(typed, topology.ErrNoInfrastructure) || !errors.Is(untyped, topology.ErrNoInfrastructure) {
		t.Errorf("nil: %v and %v, want %v", typed, untyped, topology.ErrNoInfrastructure)
	}
	for _, test := range []struct {
		name, object string
		want         error
		words        []string
	}{
		{"nothing", `null`, topology.ErrNoInfrastructure, nil},
		{"empty", `{}`, topology.ErrNoInfrastructure, nil},
		{"another kind", `{"kind":"Ingress"}`, topology.ErrNotInfrastructure, []string{`"Ingress"`}},
		{"kind is a number", `{"kind":1}`, wrongType, []string{"kind", "number"}},
		{"status is a string", `{"status":"fine"}`, wrongType, []string{"field status is of type string"}},
		{"control plane is a number", `{"status":{"controlPlaneTopology":1}}`, wrongType, []string{"status.controlPlaneTopology", "number"}},
		{"infrastructure is an array", `{"status":{"infrastructureTopology":[]}}`, wrongType, []string{"status.infrastructureTopology", "array"}},
		{"mode is a boolean", `{"status":{"highAvailabilityMode":false}}`, wrongType, []string{"status.highAvailabilityMode", "bool"}},
		{"platform is an object", `{"status":{"platform":{}}}`, wrongType, []string{"status.platform is", "object"}},
		{"platformStatus is a string", `{"status":{"platformStatus":"None"}}`, wrongType, []string{"status.platformStatus is of type string"}},
		{"platform type is a number", `{"status":{"platformStatus":{"type":4.5}}}`, wrongType, []string{"status.platformStatus.type", "number"}},
		{"the first of several", `{"status":{"infrastructureTopology":2,"controlPlaneTopology":1}}`, wrongType, []string{"status.controlPlaneTopology"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := topology.FromUnstructured(object(t, test.object))
			if !errors.Is(err, test.want) {
				t.Fatalf("error = %v, want %v", err, test.want)
			}
			contains(t, err, test.words)
			if got != (topology.Cluster{}) {
				t.Errorf("an error came with a cluster: %+v", got)
			}
		})
	}
}

// FromUnstructured does not panic, returns known modes, and agrees with FromInfrastructure.
func FuzzFromUnstructured(f *testing.F) {
	for _, example := range []string{
		`{}`,
		`null`,
		`{"kind":"Infrastructure","status":{"controlPlaneTopology":"External","infrastructureTopology":"HighlyAvailable","platformStatus":{"type":"AWS"}}}`,
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

func TestClusterValidate(t *testing.T) {
	one := topology.ReadingOf(sr)
	for name, cluster := range map[string]topology.Cluster{
		"zero":              {},
		"platform only":     {Platform: configv1.NonePlatformType},
		"no infrastructure": {ControlPlane: one},
		"no control plane":  {Infrastructure: one},
		"an unknown mode":   {ControlPlane: topology.Reading{Mode: unknown}, Infrastructure: one},
	} {
		if err := cluster.Validate(); !errors.Is(err, topology.ErrClusterNotRead) {
			t.Errorf("%s: %v, want %v", name, err, topology.ErrClusterNotRead)
		}
	}
}
