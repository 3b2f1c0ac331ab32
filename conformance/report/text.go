// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
)

// Text returns status, reason, evidence, figures, and the controls with a wrong result.
func (r Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", r.ID, r.Status)
	if r.Reason != "" {
		fmt.Fprintf(&b, ": %s", r.Reason)
	}
	b.WriteString("\n")
	writeEvidence(&b, r.Evidence)
	for _, control := range r.Controls {
		if !control.Detected {
			fmt.Fprintf(&b, "control %q: the check must %s, got: %s\n", control.Name, control.Want, control.Got)
		}
	}
	for _, figure := range r.Figures {
		fmt.Fprintf(&b, "%s: %g %s\n", figure.Name, figure.Value, figure.Unit)
	}
	return b.String()
}

func writeEvidence(b *strings.Builder, all []Evidence) {
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

// FailureMessage returns the first failed evidence or the reason in one line; empty if the check has not failed.
func (r Result) FailureMessage() string {
	switch r.mark() {
	case markPassed, markSkipped, markNotApplicable:
		return ""
	case markFailed, markWaived, markInconclusive:
	}
	return cmp.Or(FirstFailure(r.Evidence), r.Reason, string(r.Status))
}
