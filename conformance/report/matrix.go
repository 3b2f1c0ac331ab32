// SPDX-License-Identifier: Apache-2.0

package report

import "slices"

type cell struct {
	Module  string
	Results []Result
	Tally   tally
}

func modules(sets ...[]Report) []string {
	var names []string
	for _, reports := range sets {
		for _, report := range reports {
			for _, result := range report.Results {
				if !slices.Contains(names, result.Module) {
					names = append(names, result.Module)
				}
			}
		}
	}
	return names
}

func (r Report) cells(modules []string) []cell {
	cells := make([]cell, len(modules))
	for i, module := range modules {
		cells[i].Module = module
	}
	for _, result := range r.Results {
		if i := slices.Index(modules, result.Module); i >= 0 {
			cells[i].Results = append(cells[i].Results, result)
		}
	}
	for i := range cells {
		cells[i].Tally = count(cells[i].Results)
	}
	return cells
}
