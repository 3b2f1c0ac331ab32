// SPDX-License-Identifier: Apache-2.0

package guides_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/solonode/sno/e2e/guides"
	"github.com/solonode/sno/e2e/programs"
)

var update = flag.Bool("update", false, "write what the commands print into the documents")

// TestDocuments checks that something runs each command of the documents.
func TestDocuments(t *testing.T) {
	faults, err := guides.Check("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}

// limit is how long a document may take, and its cluster to end.
const limit, endLimit = 20 * time.Minute, 30 * time.Second

// TestGuides runs the commands of each document on a cluster of its own.
func TestGuides(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster for each document")
	}
	documents, err := guides.Documents("../..")
	if err != nil {
		t.Fatal(err)
	}
	var shell string
	// Once for all documents, so that none waits for a compiler.
	for _, program := range []programs.Program{programs.KubectlSNO, programs.IngressHost, programs.ConsoleHost, programs.AuthHost, programs.Run} {
		if shell, err = programs.Build(t.Context(), program, os.Stderr); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range documents {
		if d.Cluster == nil {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			cmd := exec.CommandContext(ctx, shell, append([]string{"-shell", "-built", "-scenario"}, d.Cluster...)...)
			cmd.Dir, cmd.Stderr = "../..", os.Stderr
			cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, endLimit
			results, err := guides.Run(d, cmd, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(filepath.Join("../..", d.Name), []byte(d.Updated(results)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range results {
				if r.Failure != "" && (!r.Differs || !*update) {
					t.Errorf("%s:%d: %s\n%s", d.Name, r.Line, r.Text, r.Failure)
				}
			}
			if len(results) < len(d.Commands()) {
				t.Errorf("%d of %d commands ran", len(results), len(d.Commands()))
			}
		})
	}
}
