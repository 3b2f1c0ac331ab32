package auth_test

import (
	"errors"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/auth"
)

func TestMinimumControlPlaneNodes(t *testing.T) {
	byMode := map[configv1.TopologyMode]int32{sr: 1, dual: 2, arbiter: 2, ha: 3, external: 3, empty: 3, unknown: 3}
	for _, mode := range allModes {
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
				want.Nodes = 1
			}
			if got, err := auth.MinimumControlPlaneNodes(mode, []byte(raw)); err != nil || got != want {
				t.Errorf("%q, %s: %+v, %v; want %+v", mode, raw, got, err, want)
			}
		}
		for _, raw := range []string{`{"` + key + `":"maybe"}`, `{"` + key + `":true`, `{"` + key + `":7}`} {
			got, err := auth.MinimumControlPlaneNodes(mode, []byte(raw))
			if !errors.Is(err, auth.ErrOverride) || got != (auth.Minimum{}) {
				t.Errorf("%q, %s: %+v, %v; want %v", mode, raw, got, err, auth.ErrOverride)
			}
		}
	}
}
