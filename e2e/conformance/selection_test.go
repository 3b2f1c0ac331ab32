package conformance_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/e2e/conformance"
)

func TestSelect(t *testing.T) {
	catalogue := []conformance.Check{
		{ID: "A-1", Module: "a", Tier: conformance.Static}, {ID: "A-2", Module: "a", Tier: conformance.Disruptive}, {ID: "B-1", Module: "b", Tier: conformance.Static},
	}
	static := []conformance.Tier{conformance.Static}
	for name, test := range map[string]struct {
		selection conformance.Selection
		want      string
		// fault is in the error.
		fault string
	}{
		"a tier":          {selection: conformance.Selection{Tiers: static}, want: "A-1 B-1"},
		"all tiers":       {selection: conformance.Selection{Tiers: conformance.Tiers()}, want: "A-1 A-2 B-1"},
		"a module":        {selection: conformance.Selection{Tiers: static, Modules: []string{"a"}}, want: "A-1"},
		"ids":             {selection: conformance.Selection{Tiers: conformance.Tiers(), IDs: []string{"B-1", "A-2"}}, want: "A-2 B-1"},
		"no tier":         {fault: "none in common"},
		"nothing left":    {selection: conformance.Selection{Tiers: static, IDs: []string{"A-2"}}, fault: "none in common"},
		"unknown tier":    {selection: conformance.Selection{Tiers: []conformance.Tier{"wild"}}, fault: `no tier is called "wild"`},
		"unknown module":  {selection: conformance.Selection{Tiers: static, Modules: []string{"a", "c"}}, fault: `no module is called "c"; there are a, b`},
		"unknown check":   {selection: conformance.Selection{Tiers: static, IDs: []string{"A-1", "A-9"}}, fault: `no check is called "A-9"`},
		"several unknown": {selection: conformance.Selection{Tiers: static, Modules: []string{"c"}, IDs: []string{"A-9"}}, fault: `no check is called "A-9"`},
	} {
		t.Run(name, func(t *testing.T) {
			checks, err := conformance.Select(catalogue, test.selection)
			var ids []string
			for _, check := range checks {
				ids = append(ids, check.ID)
			}
			if diff := cmp.Diff(test.want, strings.Join(ids, " ")); diff != "" {
				t.Errorf("checks (-want +got):\n%s", diff)
			}
			if (test.fault != "") != errors.Is(err, conformance.ErrNone) || (err != nil && !strings.Contains(err.Error(), test.fault)) {
				t.Errorf("error %v, want one with %q", err, test.fault)
			}
		})
	}
}
