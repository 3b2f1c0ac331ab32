// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// These functions read the output of an extension as origin's pkg/test/extensions does.

func originInfo(output string) (map[string]any, error) {
	start, end := -1, strings.LastIndex(output, "}")
	for i, at := 0, 0; i < len(output); i = at {
		at = i + strings.IndexByte(output[i:]+"\n", '\n') + 1
		if strings.HasPrefix(output[i:], "{") {
			start = i
			break
		}
	}
	if start < 0 || end < start {
		return nil, fmt.Errorf("no object in %q", output)
	}
	var about map[string]any
	return about, json.Unmarshal([]byte(output[start:end+1]), &about)
}

type originSpec struct {
	Name                string              `json:"name"`
	Labels              map[string]struct{} `json:"labels"`
	Source              string              `json:"source"`
	Lifecycle           string              `json:"lifecycle"`
	EnvironmentSelector struct {
		Include string `json:"include"`
	} `json:"environmentSelector"`
}

func originList(output string) ([]originSpec, error) {
	var all []originSpec
	for text := range strings.Lines(output) {
		if !strings.HasPrefix(text, "{") {
			continue
		}
		var s originSpec
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

type originResult struct {
	Name, Result, Lifecycle, Output, Error string
	Duration                               int64
	StartTime, EndTime                     string
}

// originResults reads backwards until a line is not a result. It returns a fault for every test without exactly one
// result.
func originResults(output string, wanted []string) (map[string]originResult, []string) {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	results, faults := map[string]originResult{}, []string(nil)
	for i := len(lines) - 1; i >= 0; i-- {
		var r originResult
		if err := json.Unmarshal([]byte(lines[i]), &r); err != nil || r.Name == "" || r.Result == "" {
			break
		}
		if _, double := results[r.Name]; double {
			faults = append(faults, "duplicate result: "+r.Name)
		}
		for _, at := range []string{r.StartTime, r.EndTime} {
			if _, err := time.Parse("2006-01-02 15:04:05.000000 UTC", at); err != nil {
				faults = append(faults, err.Error())
			}
		}
		if r.Result != "passed" && r.Result != "failed" && r.Result != "skipped" {
			faults = append(faults, "unknown result: "+r.Result)
		}
		results[r.Name] = r
	}
	for _, name := range wanted {
		if _, ok := results[name]; !ok {
			faults = append(faults, "external binary did not produce a result: "+name)
		}
	}
	if len(results) > len(wanted) {
		faults = append(faults, fmt.Sprintf("%d results for %d tests", len(results), len(wanted)))
	}
	return results, faults
}

// The readers must reject wrong output.
func TestOriginReaders(t *testing.T) {
	good := `{"name":"a","result":"passed","startTime":"2026-11-20 12:00:00.000000 UTC","endTime":"2026-11-20 12:00:00.000000 UTC"}`
	for name, output := range map[string]string{
		"nothing": "", "a line after": good + "\nRan 1 of 1 Specs\n", "twice": good + "\n" + good, "another": strings.Replace(good, `"a"`, `"b"`, 1),
		"the enhancement's result": strings.Replace(good, "passed", "success", 1), "the enhancement's time": strings.Replace(good, "2026-11-20 ", "2026-11-20T", 1),
	} {
		if _, faults := originResults(output, []string{"a"}); len(faults) == 0 {
			t.Errorf("%s: origin accepts it", name)
		}
	}
	if _, faults := originResults("noise\n"+good+"\n", []string{"a"}); len(faults) > 0 {
		t.Errorf("origin rejects a valid line: %v", faults)
	}
	if _, err := originInfo("nothing"); err == nil {
		t.Error("origin finds an object in an output without one")
	}
}
