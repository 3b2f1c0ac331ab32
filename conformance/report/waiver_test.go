// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadWaivers(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []Waiver
		err        string
	}{
		{"two", "- {id: A, why: soon, expires: 2027-01-02}\n- {id: A, scenario: ha, why: later, expires: \"2027-01-03\"}\n", []Waiver{
			{ID: "A", Why: "soon", Expires: "2027-01-02"}, {ID: "A", Scenario: "ha", Why: "later", Expires: "2027-01-03"},
		}, ""},
		{"none", "# none\n", nil, ""},
		{"unknown field", "- {id: A, why: w, expires: 2027-01-02}\n- {id: A, scenario: s, why: w, expire: 2027-01-02}\n", nil, `unknown field "[1].expire"`},
		{"duplicate key", "- {id: A, id: B}\n", nil, `"id" already set`},
		{"invalid date", "- {id: A, why: w, expires: 2027-02-30}\n", nil, `entry 1 (A): expires: "2027-02-30" is not a date`},
		{"no date", "- {id: A, why: w}\n", nil, `entry 1 (A): expires: "" is not a date`},
		{"no reason", "- {id: A, expires: 2027-01-02}\n", nil, "entry 1 (A): why: it is empty"},
		{"unknown check", "- {id: Z, why: w, expires: 2027-01-02}\n", nil, `entry 1 (Z): id: unknown check "Z"`},
		{"duplicate", "- {id: A, why: w, expires: 2027-01-02}\n- {id: A, why: v, expires: 2027-01-02}\n", nil, "entry 2 (A): id: entry 1 has the same"},
		{"no list", "id: A\n", nil, "want a list of id, scenario"},
		{"no YAML", "- [\n", nil, "yaml: line 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "waivers.yaml")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ReadWaivers(path, []string{"A", "B"})
			if test.err == "" && err != nil || test.err != "" && (!errors.Is(err, ErrWaiver) || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("got %v, want an ErrWaiver with %q", err, test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if _, err := ReadWaivers(filepath.Join(t.TempDir(), "none.yaml"), nil); !errors.Is(err, ErrWaiver) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
}

func TestApply(t *testing.T) {
	// It is 10 May in UTC, which counts.
	now := time.Date(2026, time.May, 11, 2, 0, 0, 0, time.FixedZone("east", 14*60*60))
	for _, test := range []struct {
		name    string
		waiver  Waiver
		covered []string
		want    Unused
	}{
		{"everywhere", Waiver{ID: "A", Expires: "2026-05-11"}, []string{"one", "two"}, Unused{}},
		{"one scenario", Waiver{ID: "A", Scenario: "two", Expires: "2026-05-11"}, []string{"two"}, Unused{}},
		{"on its date", Waiver{ID: "A", Expires: "2026-05-10"}, nil, Unused{Expired: []Waiver{{ID: "A", Expires: "2026-05-10"}}}},
		{"without a date", Waiver{ID: "A"}, nil, Unused{Expired: []Waiver{{ID: "A"}}}},
		{"passes", Waiver{ID: "B", Expires: "2026-06-01"}, nil, Unused{Stale: []Waiver{{ID: "B", Expires: "2026-06-01"}}}},
		{"inconclusive", Waiver{ID: "C", Scenario: "one", Expires: "2026-06-01"}, nil, Unused{Stale: []Waiver{{ID: "C", Scenario: "one", Expires: "2026-06-01"}}}},
		{"skipped somewhere", Waiver{ID: "C", Expires: "2026-06-01"}, nil, Unused{}},
		{"another scenario", Waiver{ID: "A", Scenario: "three", Expires: "2026-06-01"}, nil, Unused{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			reports := []Report{
				{Scenario: "one", Results: []Result{{ID: "A", Status: Failed}, {ID: "B", Status: Passed}, {ID: "C", Status: Inconclusive}}},
				{Scenario: "two", Results: []Result{
					{ID: "A", Status: Failed, Waiver: &Waiver{ID: "A", Why: "of an earlier run"}}, {ID: "B", Status: NotApplicable}, {ID: "C", Status: Skipped},
				}},
			}
			unused := Apply(reports, []Waiver{test.waiver}, now)
			if diff := cmp.Diff(test.want, unused); diff != "" {
				t.Errorf("unused (-want +got):\n%s", diff)
			}
			var covered []string
			for _, report := range reports {
				for _, result := range report.Results {
					if result.Waiver == nil {
						continue
					}
					if result.ID != "A" || *result.Waiver != test.waiver {
						t.Errorf("%s %s has the waiver %v", report.Scenario, result.ID, result.Waiver)
					}
					covered = append(covered, report.Scenario)
				}
			}
			if diff := cmp.Diff(test.covered, covered); diff != "" {
				t.Errorf("covered (-want +got):\n%s", diff)
			}
		})
	}
}
