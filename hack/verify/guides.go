// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/solonode/sno/hack/workspace"
)

// guidesProgram runs the commands of the documents, and checks without a cluster that every command is run by
// something.
const guidesProgram = "e2e/cmd/sno-guides"

// guideFaults returns the faults of the documents in focus. A repository without the program has none.
func guideFaults(ctx context.Context, ws *workspace.Workspace) (Findings, error) {
	if _, err := os.Stat(ws.Path(guidesProgram)); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	out, err := ws.Command(ctx, ".", []string{"GOWORK=" + ws.Path("go.work")}, "go", "run", "./"+guidesProgram, "-check").Output()
	var faults Findings
	for line := range strings.Lines(string(out)) {
		if name, _, _ := strings.Cut(line, ":"); ws.InFocus(name) {
			faults = append(faults, strings.TrimSpace(line))
		}
	}
	if exit := (*exec.ExitError)(nil); err != nil && len(out) == 0 {
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("check the commands of the documents: %w", err)
	}
	return faults, nil
}
