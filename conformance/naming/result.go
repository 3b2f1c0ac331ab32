// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/solonode/sno/conformance/report"
)

// Result returns status, reason, evidence, figures, and the controls with a wrong result.
func Result(result report.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", result.ID, result.Status)
	if result.Reason != "" {
		fmt.Fprintf(&b, ": %s", result.Reason)
	}
	b.WriteString("\n")
	evidence(&b, result.Evidence)
	for _, control := range result.Controls {
		if !control.Detected {
			fmt.Fprintf(&b, "control %q: the check must %s, got: %s\n", control.Name, control.Want, control.Got)
		}
	}
	for _, figure := range result.Figures {
		fmt.Fprintf(&b, "%s: %g %s\n", figure.Name, figure.Value, figure.Unit)
	}
	return b.String()
}

func evidence(b *strings.Builder, all []report.Evidence) {
	if len(all) == 0 {
		return
	}
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "HELD\tOBJECT\tFIELD\tWANT\tGOT")
	for _, held := range []bool{false, true} {
		for _, e := range all {
			if e.Held == held {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", yesNo(held), e.Object, e.Field, e.Want, e.Got)
			}
		}
	}
	_ = table.Flush() // a strings.Builder returns no errors
}

func yesNo(held bool) string {
	if held {
		return "yes"
	}
	return "NO"
}

// FailureMessage returns the first failed evidence or the reason in one line; empty for other results.
func FailureMessage(result report.Result) string {
	switch result.Status {
	case report.Passed, report.Skipped, report.NotApplicable:
		return ""
	case report.Failed, report.Inconclusive:
	}
	for _, e := range result.Evidence {
		if !e.Held {
			return fmt.Sprintf("%s %s: want %s, got %s", e.Object, e.Field, e.Want, e.Got)
		}
	}
	if result.Reason != "" {
		return result.Reason
	}
	return string(result.Status)
}
