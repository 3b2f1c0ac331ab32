// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"time"

	"github.com/solonode/sno/install/phase"
)

func progress(out io.Writer) func(phase.Status) {
	printed, unwritable := map[string]phase.Step{}, ""
	return func(s phase.Status) {
		if s.Unwritable != unwritable && s.Unwritable != "" {
			fmt.Fprintln(out, "The status file cannot be written, and the phases go on:", s.Unwritable)
		}
		unwritable = s.Unwritable
		for i, p := range s.Phases {
			before := printed[p.Name]
			printed[p.Name] = p
			line := func(format string, args ...any) {
				fmt.Fprintf(out, "[%2d/%d] %-20s %s\n", i+1, len(s.Phases), p.Name, fmt.Sprintf(format, args...))
			}
			switch {
			case p.State != before.State && p.State == phase.Running:
				line("started")
			case p.State != before.State && p.State == phase.Done && p.Started == nil:
				line("already done")
			case p.State != before.State && p.State == phase.Done:
				line("done in %s", p.Finished.Sub(p.Started.Time).Round(100*time.Millisecond))
			case p.State != before.State && p.State == phase.Failed:
				line("failed")
			case p.WaitingFor != before.WaitingFor && p.WaitingFor != "":
				line("waiting for %s", p.WaitingFor)
			}
		}
	}
}
