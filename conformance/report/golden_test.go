// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "update the golden files")

func TestGolden(t *testing.T) {
	before, after := []Report{smallReport(), smallReport()}, []Report{smallReport(), smallReport()}
	before[0].Scenario, before[1].Scenario, after[0].Scenario, after[1].Scenario = "gone", "both", "both", "new"
	after[0].Results[1].Status = Failed
	after[0].Results[2].Status, after[0].Results[2].Evidence = Passed, nil
	for _, test := range []struct {
		file  string
		write func(io.Writer) error
	}{
		{"report.yaml", func(w io.Writer) error { return WriteYAML(w, smallReport()) }},
		{"report.json", func(w io.Writer) error { return WriteJSON(w, smallReport()) }},
		{"junit.xml", func(w io.Writer) error { return WriteJUnit(w, smallReport()) }},
		{"diff.txt", func(w io.Writer) error { return Diff(before, after).WriteText(w) }},
	} {
		t.Run(test.file, func(t *testing.T) {
			var got bytes.Buffer
			if err := test.write(&got); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", test.file)
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
				t.Errorf("%s (-want +got), run with -update if this is correct:\n%s", path, diff)
			}
		})
	}
}

var (
	sampleScenarios = []string{"none-sno", "cloud-sno", "none-sno-day1-worker", "ha", "two-node"}
	sampleModules   = []string{"topology", "ingress", "auth"}
)

// smallReport has a result of each kind.
func smallReport() Report {
	reports, err := ReadFiles(filepath.Join("testdata", "report.yaml"))
	if err != nil {
		panic(err)
	}
	return reports[0]
}

// sampleReports have the results of the small one for each module, with more evidence than is shown.
func sampleReports() []Report {
	var reports []Report
	for _, scenario := range sampleScenarios {
		report := smallReport()
		results := report.Results
		report.Scenario, report.Results = scenario, nil
		for _, module := range sampleModules {
			for _, result := range results {
				result.ID, result.Module, result.Evidence = result.ID+"-"+module, module, slices.Repeat(result.Evidence, 5)
				report.Results = append(report.Results, result)
			}
		}
		reports = append(reports, report)
	}
	return reports
}
