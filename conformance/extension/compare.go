// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"github.com/spf13/cobra"

	"github.com/solonode/sno/conformance/report"
)

func (p Program) compare() *cobra.Command {
	return &cobra.Command{
		Use: "compare BEFORE AFTER", GroupID: groupPeople, Short: "Compare two reports", Args: cobra.ExactArgs(2),
		Long: "Compare two reports. The exit code is 0 without regressions, 1 with regressions, 2 if a file is not a report.",
		RunE: func(_ *cobra.Command, args []string) error {
			before, err := report.ReadFiles(args[0])
			if err != nil {
				return err
			}
			after, err := report.ReadFiles(args[1])
			if err != nil {
				return err
			}
			difference := report.Diff(before, after)
			if err := difference.WriteText(p.Out); err != nil {
				return err
			}
			if difference.Regressed() {
				return errFailed
			}
			return nil
		},
	}
}
