// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"errors"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/auth/internal/fixture"
	"github.com/solonode/sno/topology/topologytest"
	"github.com/solonode/sno/topology/unsupportedconfig"
)

// R-AUTH-1. topology/unsupportedconfig tests all forms of an override.
func TestMinimumControlPlaneNodes(t *testing.T) {
	byMode := map[configv1.TopologyMode]int32{topologytest.SR: 1, topologytest.Dual: 2, topologytest.Arbiter: 2, topologytest.HA: 3, topologytest.External: 3, topologytest.Empty: 3, topologytest.Unknown: 3}
	overridden := map[configv1.TopologyMode]int32{topologytest.SR: 1, topologytest.Dual: 2, topologytest.Arbiter: 2, topologytest.HA: 1, topologytest.External: 1, topologytest.Empty: 1, topologytest.Unknown: 1}
	for _, mode := range topologytest.AllModes {
		for raw, want := range map[string]struct {
			nodes       map[configv1.TopologyMode]int32
			deprecation string
			unreadable  error
		}{
			"":                                  {byMode, "", nil},
			`{"oauthConfig":{}}`:                {byMode, "", nil},
			`{"` + fixture.Key + `":false}`:     {byMode, "The override " + fixture.Key + " is deprecated and false", nil},
			fixture.Key + ": 'false'":           {byMode, "The override " + fixture.Key + " is deprecated and false", nil},
			`{"` + fixture.Key + `":"true"}`:    {overridden, "The override " + fixture.Key + " is deprecated: it is honored", nil},
			"a: b\n" + fixture.Key + ": true\n": {overridden, "The override " + fixture.Key + " is deprecated: it is honored", nil},
			`{"` + fixture.Key + `":"maybe"}`:   {byMode, "", unsupportedconfig.ErrUnreadable},
			`{"` + fixture.Key + `":true`:       {byMode, "", unsupportedconfig.ErrUnreadable},
			"[]":                                {byMode, "", unsupportedconfig.ErrUnreadable},
		} {
			got, err := auth.MinimumControlPlaneNodes(fixture.ClusterOf(mode, topologytest.HA), []byte(raw))
			if err != nil || got.Nodes != want.nodes[mode] || !errors.Is(got.Unreadable, want.unreadable) ||
				!strings.HasPrefix(got.Deprecation, want.deprecation) || (want.deprecation == "") != (got.Deprecation == "") {
				t.Errorf("%q, %s: %+v, %v; want %d nodes, %q, %v", mode, raw, got, err, want.nodes[mode], want.deprecation, want.unreadable)
			}
		}
	}
}
