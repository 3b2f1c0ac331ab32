// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRoundTrip(t *testing.T) {
	all := []Report{smallReport(), smallReport(), smallReport()}
	all[1].Scenario, all[2].Scenario = "second", "third"
	for name, write := range map[string]func(io.Writer, ...Report) error{"YAML": WriteYAML, "JSON": WriteJSON} {
		for _, reports := range [][]Report{all[:1], all[:3]} {
			// Writing sets header and counts, and does not change the caller's reports.
			incomplete := slices.Clone(reports)
			for i := range incomplete {
				incomplete[i].APIVersion, incomplete[i].Kind, incomplete[i].Counts = "", "", nil
			}
			var b bytes.Buffer
			if err := write(&b, incomplete...); err != nil {
				t.Fatal(err)
			}
			got, err := Read("report", &b)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(reports, got); diff != "" || incomplete[0].Counts != nil {
				t.Errorf("%s (-want +got):\n%s; the caller's counts are %v", name, diff, incomplete[0].Counts)
			}
		}
	}
}

func written(t *testing.T, reports ...Report) string {
	t.Helper()
	var b strings.Builder
	if err := WriteYAML(&b, reports...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReadRefuses(t *testing.T) {
	good := written(t, smallReport())
	for _, test := range []struct {
		name, old, replaced, want string
	}{
		{"unknown field", "provider: embedded", "provider: embedded\nprovidr: x", `unknown field "providr"`},
		{"unknown field within", "  - field: spec.replicas", "  - feild: x\n    field: spec.replicas", `unknown field "results[1].evidence[0].feild"`},
		{"duplicate key", "provider: embedded", "provider: embedded\nprovider: x", `"provider" already set`},
		{"another kind", "kind: " + Kind, "kind: Pod", `report 1 (none-sno): kind: "Pod" is not`},
		{"another version", "v1alpha1", "v2", `apiVersion: "conformance.sno.solonode.github.io/v2" is not`},
		{"no scenario", "scenario: none-sno\nseconds", "scenario: \"\"\nseconds", "scenario: it is empty"},
		{"no id", "  id: SNO-TOP-002", "  id: \"\"", "results[1].id: it is empty"},
		{"an id twice", "  id: SNO-TOP-002", "  id: SNO-TOP-001", `results[1].id: "SNO-TOP-001" is a duplicate`},
		{"unknown status", "status: passed", "status: great", `status: "great" is none of`},
		{"wrong type", "seconds: 12.5", "seconds: long", "seconds"},
		{"not YAML", "provider: embedded", "provider: [", "document 1"},
		{"no mapping", good, "- a\n- b\n", "document 1"},
		{"nothing", good, "# nothing\n---\n", "no report found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bad := strings.Replace(good, test.old, test.replaced, 1)
			if bad == good {
				t.Fatalf("the report has no %q", test.old)
			}
			_, err := Read("some.yaml", strings.NewReader(bad))
			if !errors.Is(err, ErrReport) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "some.yaml") {
				t.Errorf("got %v, want an ErrReport with %q", err, test.want)
			}
		})
	}
}

func TestReadFiles(t *testing.T) {
	folder := t.TempDir()
	file := func(name string, reports ...Report) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(written(t, reports...)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	all := []Report{smallReport(), smallReport(), smallReport()}
	all[1].Scenario, all[2].Scenario = "second", "third"
	one, two, again, twice := file("one.yaml", all[0], all[1]), file("two.yaml", all[2]), file("again.yaml", all[1]), file("twice.yaml", all[0], all[0])
	got, err := ReadFiles(one, two)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all[:3], got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := ReadFiles(one, again); !errors.Is(err, ErrReport) || !strings.Contains(err.Error(), one) || !strings.Contains(err.Error(), again) {
		t.Errorf("a scenario in two files: got %v", err)
	}
	if _, err := ReadFiles(twice); !errors.Is(err, ErrReport) || !strings.Contains(err.Error(), `"none-sno" is also in`) {
		t.Errorf("a scenario twice in a file: got %v", err)
	}
	if _, err := ReadFiles(filepath.Join(folder, "none.yaml")); !errors.Is(err, ErrReport) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
}
