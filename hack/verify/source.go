// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/format"
	"io"
	"os"
	"strings"

	"github.com/solonode/sno/hack/mutants"
	"github.com/solonode/sno/hack/workspace"
)

func checkFormat(ctx context.Context, ws *workspace.Workspace, _ io.Writer) error {
	files, err := ws.Files(ctx)
	if err != nil {
		return err
	}
	var faults Findings
	for _, name := range files {
		if !strings.HasSuffix(name, ".go") || !ws.InFocus(name) {
			continue
		}
		data, err := os.ReadFile(ws.Path(name))
		if err != nil {
			return err
		}
		formatted, err := format.Source(data)
		switch {
		case err != nil:
			faults = append(faults, fmt.Sprintf("%s: %v", name, err))
		case !bytes.Equal(data, formatted):
			faults = append(faults, name+": run gofmt -w on it")
		}
	}
	return faults.errorOrNil()
}

func checkMutants(_ context.Context, ws *workspace.Workspace, _ io.Writer) error {
	var faults Findings
	for _, m := range ws.Modules {
		if !ws.InFocus(m.Dir) {
			continue
		}
		found, err := mutants.Check(ws.Path(m.Dir))
		switch {
		case errors.Is(err, os.ErrNotExist):
			if m.InWork && !strings.HasPrefix(m.Dir, "examples/") {
				faults = append(faults, m.Dir+": has no "+mutants.FileName)
			}
		case err != nil:
			faults = append(faults, fmt.Sprintf("%s/%s: %v", m.Dir, mutants.FileName, err))
		}
		for _, fault := range found {
			faults = append(faults, fmt.Sprintf("%s/%s: %s", m.Dir, mutants.FileName, fault))
		}
	}
	return faults.errorOrNil()
}
