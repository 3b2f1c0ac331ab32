// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"errors"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/topology/unsupportedconfig"
)

// R-AUTH-1. topology/unsupportedconfig tests all forms of an override.
func TestMinimumControlPlaneNodes(t *testing.T) {
	byMode := map[configv1.TopologyMode]int32{sr: 1, dual: 2, arbiter: 2, ha: 3, external: 3, empty: 3, unknown: 3}
	overridden := map[configv1.TopologyMode]int32{sr: 1, dual: 2, arbiter: 2, ha: 1, external: 1, empty: 1, unknown: 1}
	for _, mode := range allModes {
		for raw, want := range map[string]struct {
			nodes       map[configv1.TopologyMode]int32
			deprecation string
			unreadable  error
		}{
			"":                          {byMode, "", nil},
			`{"oauthConfig":{}}`:        {byMode, "", nil},
			`{"` + key + `":false}`:     {byMode, "The override " + key + " is deprecated and false", nil},
			key + ": 'false'":           {byMode, "The override " + key + " is deprecated and false", nil},
			`{"` + key + `":"true"}`:    {overridden, "The override " + key + " is deprecated: it is honored", nil},
			"a: b\n" + key + ": true\n": {overridden, "The override " + key + " is deprecated: it is honored", nil},
			`{"` + key + `":"maybe"}`:   {byMode, "", unsupportedconfig.ErrUnreadable},
			`{"` + key + `":true`:       {byMode, "", unsupportedconfig.ErrUnreadable},
			"[]":                        {byMode, "", unsupportedconfig.ErrUnreadable},
		} {
			got, err := auth.MinimumControlPlaneNodes(clusterOf(mode, ha), []byte(raw))
			if err != nil || got.Nodes != want.nodes[mode] || !errors.Is(got.Unreadable, want.unreadable) ||
				!strings.HasPrefix(got.Deprecation, want.deprecation) || (want.deprecation == "") != (got.Deprecation == "") {
				t.Errorf("%q, %s: %+v, %v; want %d nodes, %q, %v", mode, raw, got, err, want.nodes[mode], want.deprecation, want.unreadable)
			}
		}
	}
}
