// SPDX-License-Identifier: Apache-2.0

package report

import (
	"path/filepath"
	"slices"
)

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
