// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"k8s.io/klog/v2"

	"github.com/solonode/sno/install/phase"
)

const long = `sno-install installs a single node.

Commands that act on the node write a status file with what is done, what is running and what it waits for. Exit codes: 0 done, 1 failed,
2 the input has to be changed first, 3 time limit exceeded, 130 interrupted. After 1, 3 and 130 the same command continues.`

const exitStop = 130

var errUsage = errors.New("see sno-install --help")

// Main runs the program with the arguments after its name and returns the exit code.
func Main(ctx context.Context, arguments []string, out, errs io.Writer) int {
	// The command reports errors and retries itself, so libraries need not log them.
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	root := New(out, errs)
	root.SetArgs(arguments)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return phase.ExitDone
	case ctx.Err() != nil:
		fmt.Fprintln(errs, "sno-install: interrupted; the same command continues")
		return exitStop
	}
	fmt.Fprintf(errs, "sno-install: %s\n", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	if errors.Is(err, errUsage) || errors.Is(err, errInput) {
		return phase.ExitInput
	}
	return phase.ExitCode(err)
}

var errInput = errors.New("nothing was done")

// unusable wraps an error of unusable input; several errors become a list.
func unusable(err error) error {
	if strings.Contains(err.Error(), "\n") {
		return fmt.Errorf("%w:\n%w", errInput, err)
	}
	return fmt.Errorf("%w; %w", err, errInput)
}

// New returns the command.
func New(out, errs io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use: "sno-install", Short: "Install a single node", Long: long, Version: releaseVersion(), Args: noArguments,
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetOut(out)
	root.SetErr(errs)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w; %w", err, errUsage) })
	root.CompletionOptions.HiddenDefaultCmd = true
	create := &cobra.Command{Use: "create", Short: "Write Ignition configs", Args: noArguments, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	create.AddCommand(newSingleNode(out, errs), newAllInOne(out, errs), newWorker(out))
	root.AddCommand(create, newPreflight(out), newEmbed(out), newNodeImage(errs), newBootstrap(errs), newServeStatus(), newWaitFor(out, errs), newStart(out, errs), newRestore(out, errs), newPostReboot(errs),
		newAllInOneNode(errs), newRemoveUnformed(out, errs), newRotate(errs), newGather(out), newLeftovers(out), newManPages())
	return root
}

// noArguments refuses positional arguments, such as an unknown command.
func noArguments(_ *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("unknown command %q; %w", arguments[0], errUsage)
	}
	return nil
}

func phases(c *cobra.Command, dir string, list []phase.Phase, errs io.Writer) error {
	return phase.Run(c.Context(), list, phase.Options{
		Command: c.Name(), StatusFile: filepath.Join(dir, c.Name()+".json"), Report: progress(errs),
	})
}

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

// newManPages returns a hidden command for packagers.
func newManPages() *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write a man page for each command into a folder", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, folder []string) error {
			c.Root().DisableAutoGenTag = true
			return doc.GenManTree(c.Root(), &doc.GenManHeader{Section: "1", Manual: "sno", Source: "sno " + c.Root().Version}, folder[0])
		},
	}
}
