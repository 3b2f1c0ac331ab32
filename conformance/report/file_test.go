// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRoundTrip(t *testing.T) {
	all := []Report{smallReport(), smallReport(), smallReport()}
	all[1].Scenario, all[2].Scenario = "second", "third"
	for name, write := range map[string]func(io.Writer, ...Report) error{"YAML": WriteYAML, "JSON": WriteJSON} {
		for _, reports := range [][]Report{all[:1], all[:3]} {
			var b bytes.Buffer
			if err := write(&b, reports...); err != nil {
				t.Fatal(err)
			}
			got, err := Read("report", &b)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(reports, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// Writing sets header and counts, and does not change the caller's report.
func TestWriteCompletes(t *testing.T) {
	report := smallReport()
	report.APIVersion, report.Kind, report.Counts = "", "", nil
	var b bytes.Buffer
	if err := WriteYAML(&b, report); err != nil {
		t.Fatal(err)
	}
	got, err := Read("report", &b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Report{smallReport()}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if report.Counts != nil {
		t.Error("the caller's report was changed")
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
		{"count", "  passed: 1", "  passed: 2", "counts.passed: it is 2, but 1 results are passed"},
		{"missing count", "  passed: 1\n", "", "counts.passed: it is missing"},
		{"another count", "  passed: 1", "  passed: 1\n  great: 3", "counts.great: unknown status"},
		{"unknown status", "status: passed", "status: great", `status: "great" is none of`},
		{"wrong type", "seconds: 12.5", "seconds: long", "seconds"},
		{"not YAML", "provider: embedded", "provider: [", "document 1"},
		{"no mapping", good, "- a\n- b\n", "document 1"},
		{"nothing", good, "# nothing\n---\n", "no report found"},
		{"twice", good, good + "---\n" + good, `report 2: scenario: "none-sno" is a duplicate`},
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

func TestValidate(t *testing.T) {
	held := []Evidence{{Held: true}}
	detected := []Control{{Detected: true}}
	for _, test := range []struct {
		name   string
		result Result
		want   string
	}{
		{"passed", Result{ID: "a", Module: "m", Status: Passed, Evidence: held, Controls: detected}, ""},
		{"passed without evidence", Result{ID: "a", Module: "m", Status: Passed, Controls: detected}, "results[0] (a).status: it is passed, but not every evidence"},
		{"passed with bad evidence", Result{ID: "a", Module: "m", Status: Passed, Evidence: []Evidence{{}}, Controls: detected}, "not every evidence held"},
		{"passed without controls", Result{ID: "a", Module: "m", Status: Passed, Evidence: held}, "not every control was detected"},
		{"passed with a control undetected", Result{ID: "a", Module: "m", Status: Passed, Evidence: held, Controls: []Control{{}}}, "not every control"},
		{"failed", Result{ID: "a", Module: "m", Status: Failed, Evidence: []Evidence{{}}}, ""},
		{"failed with an error", Result{ID: "a", Module: "m", Status: Failed, Reason: "forbidden"}, ""},
		{"failed without a failure", Result{ID: "a", Module: "m", Status: Failed, Evidence: held}, "reason: the check failed without a failed evidence or a reason"},
		{"skipped without reason", Result{ID: "a", Module: "m", Status: Skipped}, "reason: it is empty, and the check is skipped"},
		{"not applicable without reason", Result{ID: "a", Module: "m", Status: NotApplicable}, "reason: it is empty"},
		{"inconclusive without reason", Result{ID: "a", Module: "m", Status: Inconclusive}, "reason: it is empty"},
		{"no id", Result{Module: "m", Status: Skipped, Reason: "r"}, "results[0] ().id: it is empty"},
		{"no module", Result{ID: "a", Status: Skipped, Reason: "r"}, "module: it is empty"},
		{"waiver without a failure", Result{ID: "a", Module: "m", Status: Skipped, Reason: "r", Waiver: &Waiver{Expires: "2027-01-01"}}, "waiver: the check is skipped"},
		{"waiver without a date", Result{ID: "a", Module: "m", Status: Failed, Reason: "r", Waiver: &Waiver{Expires: "soon"}}, `waiver.expires: "soon" is not a date`},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := Report{APIVersion: APIVersion, Kind: Kind, Scenario: "s", Results: []Result{test.result}}
			report.Count()
			err := report.Validate()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	twice := smallReport()
	twice.Results = append(twice.Results, twice.Results[0])
	twice.Count()
	if err := twice.Validate(); err == nil || !strings.Contains(err.Error(), "].id: \""+twice.Results[0].ID+"\" is a duplicate") {
		t.Errorf("a duplicate id: got %v", err)
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
	one, two, again := file("one.yaml", all[0], all[1]), file("two.yaml", all[2]), file("again.yaml", all[1])
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
	if _, err := ReadFiles(filepath.Join(folder, "none.yaml")); !errors.Is(err, ErrReport) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
}
