// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadFindings(t *testing.T) {
	const text = `{"config": {"scan_level": "symbol"}}
{"osv": {"id": "GO-1", "summary": "Loop in a parser"}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.2.3", "trace": [{"module": "example.com/a"}]}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.2.3", "trace": [{"module": "example.com/a", "package": "example.com/a/b"}]}}
{"osv": {"id": "GO-2", "summary": "Not called"}}
{"finding": {"osv": "GO-2", "trace": [{"module": "example.com/c", "package": "example.com/c"}]}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.2.3", "trace": [{"module": "example.com/a", "package": "example.com/a/b", "function": "Parse"},
 {"module": "example.com/us", "package": "example.com/us/p", "function": "Read"}]}}
`
	found := map[string]vulnerability{}
	if err := readFindings(strings.NewReader(text), found); err != nil {
		t.Fatal(err)
	}
	want := map[string]vulnerability{"GO-1": {"Loop in a parser", "example.com/a@v1.2.3", "example.com/us/p.Read calls example.com/a/b.Parse"}}
	if diff := cmp.Diff(want, found, cmp.AllowUnexported(vulnerability{})); diff != "" {
		t.Error(diff)
	}
	if err := readFindings(strings.NewReader(`{"osv": `), found); err == nil {
		t.Error("output that ends early must be an error")
	}
}

func TestUnaccepted(t *testing.T) {
	now := time.Date(2026, 12, 24, 23, 0, 0, 0, time.UTC)
	found := map[string]vulnerability{"GO-1": {"a loop", "example.com/a@v1.2.3", "p.Read calls b.Parse"}}
	tests := map[string]struct {
		entries []accepted
		want    []string // beginnings
	}{
		"no entry":                {nil, []string{"GO-1: a loop: p.Read calls b.Parse; fixed in example.com/a@v1.2.3"}},
		"accepted":                {[]accepted{{"GO-1", "not reached by a client", "2027-01-31"}}, nil},
		"accepted until tonight":  {[]accepted{{"GO-1", "not reached by a client", "2026-12-24"}}, nil},
		"accepted until the past": {[]accepted{{"GO-1", "not reached by a client", "2026-12-23"}}, []string{vulnerabilitiesFile + ": GO-1 was accepted until"}},
		"without a reason":        {[]accepted{{"GO-1", "", "2027-01-31"}}, []string{vulnerabilitiesFile + ": GO-1: needs a reason"}},
		"without a date":          {[]accepted{{"GO-1", "not reached by a client", ""}}, []string{vulnerabilitiesFile + ": GO-1: needs a reason"}},
		"of nothing": {
			[]accepted{{"GO-1", "not reached", "2027-01-31"}, {"GO-7", "not reached", "2027-01-31"}},
			[]string{vulnerabilitiesFile + ": GO-7 is not found any more"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := unaccepted(found, test.entries, now)
			if len(got) != len(test.want) {
				t.Fatalf("got %d faults, want %d: %v", len(got), len(test.want), got)
			}
			for i, want := range test.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("got %q, want %q", got[i], want)
				}
			}
		})
	}
}
