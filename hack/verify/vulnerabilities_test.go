// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadVulnerabilities(t *testing.T) {
	const text = `{"config": {"scan_level": "package"}}
{"osv": {"id": "GO-1", "summary": "Loop in a parser"}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.2.3", "trace": [{"module": "example.com/a"}]}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.2.3", "trace": [{"module": "example.com/a", "package": "example.com/a/b"}]}}
{"osv": {"id": "GO-2", "summary": "Not compiled"}}
{"finding": {"osv": "GO-2", "trace": [{"module": "example.com/c"}]}}
{"osv": {"id": "GO-3", "summary": "In Go"}}
{"finding": {"osv": "GO-3", "fixed_version": "v1.26.9", "trace": [{"module": "stdlib", "package": "net/http"}]}}
`
	found, err := readVulnerabilities([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"GO-1": "Loop in a parser: package example.com/a/b; fixed in example.com/a@v1.2.3"}, found); diff != "" {
		t.Error(diff)
	}
	if _, err := readVulnerabilities([]byte(`{"osv": `)); err == nil {
		t.Error("output that ends early must be an error")
	}
}

func TestUnaccepted(t *testing.T) {
	now := time.Date(2026, 12, 24, 23, 0, 0, 0, time.UTC)
	one := []string{"GO-1"}
	for name, test := range map[string]struct {
		entries []accepted
		want    string
	}{
		"no entry":                {nil, "GO-1: a loop"},
		"accepted":                {[]accepted{{one, "not reached by a client", "2027-01-31"}}, ""},
		"accepted until tonight":  {[]accepted{{one, "not reached by a client", "2026-12-24"}}, ""},
		"accepted until the past": {[]accepted{{one, "not reached by a client", "2026-12-23"}}, vulnerabilitiesFile + ": GO-1 was accepted until 2026-12-23"},
		"without a reason":        {[]accepted{{one, "", "2027-01-31"}}, vulnerabilitiesFile + ": GO-1: needs ids"},
		"without a date":          {[]accepted{{one, "not reached by a client", ""}}, vulnerabilitiesFile + ": GO-1: needs ids"},
		"of nothing":              {[]accepted{{[]string{"GO-1", "GO-7"}, "not reached", "2027-01-31"}}, vulnerabilitiesFile + ": GO-7 is not found any more"},
	} {
		got := unaccepted(map[string]string{"GO-1": "a loop"}, test.entries, now)
		if (len(got) > 0) != (test.want != "") || !strings.HasPrefix(strings.Join(got, "\n"), test.want) {
			t.Errorf("%s: got %v, want %q", name, got, test.want)
		}
	}
}
