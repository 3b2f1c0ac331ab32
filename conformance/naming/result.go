package naming

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/solonode/sno/conformance/report"
)

// Result says in a few lines how a check ended: its status and reason, what it looked at, and the controls that were not detected.
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
			fmt.Fprintf(&b, "control %q had to turn the check %s: %s\n", control.Name, control.Want, control.Got)
		}
	}
	for _, figure := range result.Figures {
		fmt.Fprintf(&b, "%s: %g %s\n", figure.Name, figure.Value, figure.Unit)
	}
	return b.String()
}

// evidence puts what did not hold first: that is what the reader came for.
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
	_ = table.Flush() // a strings.Builder takes everything
}

func yesNo(held bool) string {
	if held {
		return "yes"
	}
	return "NO"
}

// FailureMessage is the one line that says why a result is no success: the first thing that did not hold, or the reason. Empty for the others.
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
