// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadFindings(t *testing.T) {
	const text = `{"config": {"scan_level": "package"}}
{"osv": {"id": "GO-1", "summary": "Loop in a parser"}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.2.3", "trace": [{"module": "example.com/a"}]}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.2.3", "trace": [{"module": "example.com/a", "package": "example.com/a/b"}]}}
{"osv": {"id": "GO-2", "summary": "Not compiled"}}
{"finding": {"osv": "GO-2", "trace": [{"module": "example.com/c"}]}}
{"osv": {"id": "GO-3", "summary": "In Go"}}
{"finding": {"osv": "GO-3", "fixed_version": "v1.26.9", "trace": [{"module": "stdlib", "package": "net/http"}]}}
{"osv": {"id": "GO-4", "summary": "In Go and in a copy"}}
{"finding": {"osv": "GO-4", "fixed_version": "v1.26.10", "trace": [{"module": "stdlib", "package": "net/http"}]}}
{"finding": {"osv": "GO-4", "fixed_version": "v0.60.0", "trace": [{"module": "example.com/net", "package": "example.com/net/http2"}]}}
{"finding": {"osv": "GO-4", "fixed_version": "v1.26.10", "trace": [{"module": "stdlib", "package": "net/http/httputil"}]}}
`
	found := map[vulnerability]details{}
	if err := readFindings(strings.NewReader(text), "render", found); err != nil {
		t.Fatal(err)
	}
	want := map[vulnerability]details{
		{"GO-1", "render"}: {"Loop in a parser", "example.com/a/b", "example.com/a@v1.2.3", false},
		{"GO-3", "render"}: {"In Go", "net/http", "v1.26.9", true},
		{"GO-4", "render"}: {"In Go and in a copy", "example.com/net/http2", "example.com/net@v0.60.0", false},
	}
	if diff := cmp.Diff(want, found, cmp.AllowUnexported(vulnerability{}, details{})); diff != "" {
		t.Error(diff)
	}
	if err := readFindings(strings.NewReader(`{"osv": `), "render", found); err == nil {
		t.Error("output that ends early must be an error")
	}
}

func TestStandard(t *testing.T) {
	n, fixed := standard(map[vulnerability]details{
		{"GO-1", "render"}: {fixed: "v1.26.9", standard: true}, {"GO-1", "install"}: {fixed: "v1.26.9", standard: true},
		{"GO-2", "render"}: {fixed: "v1.26.10", standard: true}, {"GO-3", "render"}: {fixed: "example.com/a@v9.9.9"},
	})
	if n != 2 || fixed != "go1.26.10" {
		t.Errorf("got %d, fixed in %s; want 2, fixed in go1.26.10", n, fixed)
	}
}

func TestUnaccepted(t *testing.T) {
	now := time.Date(2026, 12, 24, 23, 0, 0, 0, time.UTC)
	found := map[vulnerability]details{
		{"GO-1", "render"}: {"a loop", "a/b", "example.com/a@v1.2.3", false},
		{"GO-9", "render"}: {"of Go", "net/http", "v1.26.9", true},
	}
	one, in := []string{"GO-1"}, []string{"render"}
	tests := map[string]struct {
		entries []accepted
		want    []string // beginnings
	}{
		"no entry":                {nil, []string{"GO-1: a loop: package a/b in render; fixed in example.com/a@v1.2.3"}},
		"accepted":                {[]accepted{{one, in, "not reached by a client", "2027-01-31"}}, nil},
		"accepted until tonight":  {[]accepted{{one, in, "not reached by a client", "2026-12-24"}}, nil},
		"accepted until the past": {[]accepted{{one, in, "not reached by a client", "2026-12-23"}}, []string{vulnerabilitiesFile + ": GO-1 was accepted until"}},
		"without a reason":        {[]accepted{{one, in, "", "2027-01-31"}}, []string{vulnerabilitiesFile + ": GO-1: needs ids"}},
		"without a date":          {[]accepted{{one, in, "not reached by a client", ""}}, []string{vulnerabilitiesFile + ": GO-1: needs ids"}},
		"without a place": {
			[]accepted{{one, nil, "not reached by a client", "2027-01-31"}},
			[]string{vulnerabilitiesFile + ": GO-1: needs ids", "GO-1: a loop"},
		},
		"elsewhere": {
			[]accepted{{one, []string{"install"}, "not reached by a client", "2027-01-31"}},
			[]string{vulnerabilitiesFile + ": GO-1 is not found any more in install", "GO-1: a loop"},
		},
		"of nothing": {
			[]accepted{{[]string{"GO-1", "GO-7"}, in, "not reached", "2027-01-31"}},
			[]string{vulnerabilitiesFile + ": GO-7 is not found any more in render"},
		},
		"of Go's own library": {
			[]accepted{{[]string{"GO-1", "GO-9"}, in, "not reached", "2027-01-31"}},
			[]string{vulnerabilitiesFile + ": GO-9 is not found any more in render"},
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
