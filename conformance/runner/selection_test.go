// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/conformance/catalogue"
)

func TestSelect(t *testing.T) {
	all := []catalogue.Check{
		{ID: "A-1", Module: "a", Tier: catalogue.Static}, {ID: "A-2", Module: "a", Tier: catalogue.Disruptive}, {ID: "B-1", Module: "b", Tier: catalogue.Static},
	}
	static := []catalogue.Tier{catalogue.Static}
	for name, test := range map[string]struct {
		selection Selection
		want      string
		fault     string
	}{
		"a tier":          {selection: Selection{Tiers: static}, want: "A-1 B-1"},
		"all tiers":       {selection: Selection{Tiers: catalogue.Tiers()}, want: "A-1 A-2 B-1"},
		"a module":        {selection: Selection{Tiers: static, Modules: []string{"a"}}, want: "A-1"},
		"ids":             {selection: Selection{Tiers: catalogue.Tiers(), IDs: []string{"B-1", "A-2"}}, want: "A-2 B-1"},
		"no tier":         {fault: "no check in common"},
		"nothing left":    {selection: Selection{Tiers: static, IDs: []string{"A-2"}}, fault: "no check in common"},
		"unknown tier":    {selection: Selection{Tiers: []catalogue.Tier{"wild"}}, fault: `unknown tier "wild"`},
		"unknown module":  {selection: Selection{Tiers: static, Modules: []string{"a", "c"}}, fault: `unknown module "c", want one of a, b`},
		"unknown check":   {selection: Selection{Tiers: static, IDs: []string{"A-1", "A-9"}}, fault: `unknown id "A-9"`},
		"several unknown": {selection: Selection{Tiers: static, Modules: []string{"c"}, IDs: []string{"A-9"}}, fault: `unknown id "A-9"`},
	} {
		t.Run(name, func(t *testing.T) {
			selected, err := Select(all, test.selection)
			var ids []string
			for _, check := range selected {
				ids = append(ids, check.ID)
			}
			if diff := cmp.Diff(test.want, strings.Join(ids, " ")); diff != "" {
				t.Errorf("checks (-want +got):\n%s", diff)
			}
			if (test.fault != "") != errors.Is(err, ErrNoMatch) || (err != nil && !strings.Contains(err.Error(), test.fault)) {
				t.Errorf("error %v, want one with %q", err, test.fault)
			}
		})
	}
}
