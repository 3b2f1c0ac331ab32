// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiff(t *testing.T) {
	result := func(status Status) []Result { return []Result{{ID: "A", Title: "title", Status: status}} }
	waived := []Result{{ID: "A", Title: "title", Status: Failed, Waiver: &Waiver{}}}
	change := func(before, after string) []Change {
		return []Change{{Scenario: "ha", ID: "A", Title: "title", Before: before, After: after}}
	}
	for _, test := range []struct {
		name          string
		before, after []Result
		want          Difference
	}{
		{"same", result(Passed), result(Passed), Difference{}},
		{"still failing", result(Failed), result(Failed), Difference{}},
		{"fails", result(Passed), result(Failed), Difference{Regressions: change("passed", "failed")}},
		{"inconclusive", result(Passed), result(Inconclusive), Difference{Regressions: change("passed", "inconclusive")}},
		{"no longer run", result(Passed), result(Skipped), Difference{Regressions: change("passed", "skipped")}},
		{"no longer applies", result(Passed), result(NotApplicable), Difference{Others: change("passed", "not applicable")}},
		{"waived now", result(Passed), waived, Difference{Others: change("passed", "waived")}},
		{"waiver expired", waived, result(Failed), Difference{Regressions: change("waived", "failed")}},
		{"waived and fixed", waived, result(Passed), Difference{Fixes: change("waived", "passed")}},
		{"fixed", result(Failed), result(Passed), Difference{Fixes: change("failed", "passed")}},
		{"conclusive", result(Inconclusive), result(Passed), Difference{Fixes: change("inconclusive", "passed")}},
		{"worse than before", result(Inconclusive), result(Failed), Difference{Others: change("inconclusive", "failed")}},
		{"run for the first time", result(Skipped), result(Failed), Difference{Others: change("skipped", "failed")}},
		{"removed", result(Passed), nil, Difference{Regressions: change("passed", "")}},
		{"removed while failing", result(Failed), nil, Difference{Regressions: change("failed", "")}},
		{"new", nil, result(Failed), Difference{Added: change("", "failed")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Diff([]Report{{Scenario: "ha", Results: test.before}}, []Report{{Scenario: "ha", Results: test.after}})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got.Regressed() != (len(test.want.Regressions) > 0) {
				t.Errorf("regressed: %v", got.Regressed())
			}
		})
	}
}

func TestDiffScenarios(t *testing.T) {
	got := Diff([]Report{{Scenario: "old"}, {Scenario: "both"}}, []Report{{Scenario: "both"}, {Scenario: "new"}})
	want := Difference{
		Regressions: []Change{{Scenario: "old", Before: "reported"}}, Added: []Change{{Scenario: "new", After: "reported"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDiffFigures(t *testing.T) {
	report := func(figures ...Figure) []Report {
		return []Report{{Scenario: "ha", Results: []Result{{ID: "A", Status: Passed, Figures: figures}}}}
	}
	before := report(Figure{"twice", 2, "s"}, Figure{"more", 2, "s"}, Figure{"none", 0, "requests"}, Figure{"unit", 1, "s"}, Figure{"gone", 1, "s"})
	after := report(Figure{"twice", 4, "s"}, Figure{"more", 4.5, "s"}, Figure{"none", 1, "requests"}, Figure{"unit", 900, "ms"}, Figure{"new", 9, "s"})
	got := Diff(before, after)
	want := Difference{Increases: []Increase{
		{"ha", "A", Figure{"more", 2, "s"}, Figure{"more", 4.5, "s"}}, {"ha", "A", Figure{"none", 0, "requests"}, Figure{"none", 1, "requests"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var text strings.Builder
	if err := got.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	wantText := "increase  ha  A  2 s -> 4.5 s              more\nincrease  ha  A  0 requests -> 1 requests  none\n"
	if diff := cmp.Diff(wantText, text.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}
