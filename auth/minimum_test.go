package auth_test

import (
	"errors"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/topology"
)

// Every mode with every form of the override: an unreadable one is reported and changes nothing, and true counts only where three nodes
// are waited for (R-AUTH-1).
func TestMinimumControlPlaneNodes(t *testing.T) {
	byMode := map[configv1.TopologyMode]int32{sr: 1, dual: 2, arbiter: 2, ha: 3, external: 3, empty: 3, unknown: 3}
	overridden := map[configv1.TopologyMode]int32{sr: 1, dual: 2, arbiter: 2, ha: 1, external: 1, empty: 1, unknown: 1}
	for _, mode := range allModes {
		cluster := clusterOf(mode, ha)
		for raw, override := range map[string]auth.Override{
			"":                           {},
			`{"oauthConfig":{}}`:         {},
			`{"` + key + `":false}`:      {Present: true},
			key + ": 'false'":            {Present: true},
			`{"` + key + `":"true"}`:     {Present: true, Value: true},
			"a: b\n" + key + ": true\n":  {Present: true, Value: true},
			`{"a":1,"` + key + `":"T" }`: {Present: true, Value: true},
		} {
			want := auth.Minimum{Nodes: byMode[mode], Override: override}
			if override.Value {
				want.Nodes = overridden[mode]
			}
			if got, err := auth.MinimumControlPlaneNodes(cluster, []byte(raw)); err != nil || got != want {
				t.Errorf("%q, %s: %+v, %v; want %+v", mode, raw, got, err, want)
			}
		}
		for _, raw := range []string{`{"` + key + `":"maybe"}`, `{"` + key + `":true`, `{"` + key + `":7}`} {
			got, err := auth.MinimumControlPlaneNodes(cluster, []byte(raw))
			if err != nil || !errors.Is(got.Unreadable, auth.ErrOverride) || got.Nodes != byMode[mode] || got.Override != (auth.Override{}) {
				t.Errorf("%q, %s: %+v, %v; want %d nodes and %v", mode, raw, got, err, byMode[mode], auth.ErrOverride)
			}
		}
	}
	if got, err := auth.MinimumControlPlaneNodes(topology.Cluster{}, nil); !errors.Is(err, topology.ErrClusterNotRead) || got != (auth.Minimum{}) {
		t.Errorf("a Cluster that nobody read: %+v, %v", got, err)
	}
}
