// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/solonode/sno/conformance/report"
)

// line converts a result to the contract. Inconclusive checks have failed there.
func line(f finished) (testResult, error) {
	started := f.ended.Add(-time.Duration(f.result.Seconds * float64(time.Second)))
	r := testResult{
		Name: f.check.Name(), Lifecycle: lifecycle(f.check),
		Duration:  f.ended.Sub(started).Milliseconds(),
		StartTime: started.UTC().Format(timeLayout), EndTime: f.ended.UTC().Format(timeLayout),
		Result: outcome(f.result), Output: f.result.Text(), Error: f.result.FailureMessage(),
	}
	for _, d := range []struct {
		name  string
		value any
		some  bool
	}{
		{"status", f.result.Status, true},
		{"reason", f.result.Reason, f.result.Reason != ""},
		{"evidence", f.result.Evidence, len(f.result.Evidence) > 0},
		{"controls", f.result.Controls, len(f.result.Controls) > 0},
		{"figures", f.result.Figures, len(f.result.Figures) > 0},
	} {
		if !d.some {
			continue
		}
		value, err := json.Marshal(d.value)
		if err != nil {
			return testResult{}, fmt.Errorf("result of %s: %s: %w", f.check.ID, d.name, err)
		}
		r.Details = append(r.Details, detail{Name: d.name, Value: value})
	}
	return r, nil
}

func outcome(result report.Result) string {
	switch {
	case result.FailureMessage() != "":
		return failed
	case result.Status == report.Passed:
		return passed
	default:
		return skipped
	}
}

// unknown returns a blocking failure for a name that no test has, because the caller expects a result.
func unknown(name string, now time.Time) testResult {
	at := now.UTC().Format(timeLayout)
	why := fmt.Sprintf("unknown test %q: `sno-tests list tests -o names` prints the names", name)
	return testResult{Name: name, Lifecycle: blocking, StartTime: at, EndTime: at, Result: failed, Output: why, Error: why}
}
