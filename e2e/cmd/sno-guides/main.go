// SPDX-License-Identifier: Apache-2.0

// Command sno-guides runs the commands of documents on embedded clusters, and compares what they print with what the
// documents show. See -help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/solonode/sno/e2e/commandline"
	"github.com/solonode/sno/e2e/guides"
	"github.com/solonode/sno/e2e/programs"
)

// limit is how long a command of a document may take.
const limit = 2 * time.Minute

var (
	errFaults   = errors.New("documents have faults")
	errFailures = errors.New("documents do not print what they show")
	errUnknown  = errors.New("not a document with commands to run")
)

func main() { os.Exit(commandline.Main("sno-guides", run)) }

func run(ctx context.Context, arguments []string, errs io.Writer) error {
	flags := flag.NewFlagSet("sno-guides", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		fmt.Fprintf(errs, "sno-guides [FLAGS] [DOCUMENT...]: run the commands of the documents, by default of all.\n")
		flags.PrintDefaults()
	}
	check := flags.Bool("check", false, "Run nothing; check the markers and the blocks of all documents.")
	update := flags.Bool("update", false, "Write what the commands print into the documents.")
	parallel := flags.Int("parallel", 2, "How many documents run at a time, each on a cluster of its own.")
	if err := flags.Parse(arguments); err != nil {
		return err //nolint:wrapcheck // it was printed
	}
	root, err := programs.Root(ctx)
	if err != nil {
		return err //nolint:wrapcheck // the error is complete
	}
	if *check {
		return checkAll(root)
	}
	documents, err := choose(root, flags.Args())
	if err != nil {
		return err
	}
	return runAll(ctx, root, documents, *parallel, *update, errs)
}

// checkAll prints the faults, a line each.
func checkAll(root string) error {
	faults, err := guides.Check(root)
	if err != nil {
		return err //nolint:wrapcheck // the error is complete
	}
	for _, fault := range faults {
		fmt.Println(fault)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: %d", errFaults, len(faults))
	}
	return nil
}

// choose returns the documents of the names, or all that have a cluster.
func choose(root string, names []string) ([]*guides.Document, error) {
	all, err := guides.Documents(root)
	if err != nil {
		return nil, err //nolint:wrapcheck // the error is complete
	}
	all = slices.DeleteFunc(all, func(d *guides.Document) bool { return d.Cluster == nil })
	if len(names) == 0 {
		return all, nil
	}
	var chosen []*guides.Document
	for _, name := range names {
		i := slices.IndexFunc(all, func(d *guides.Document) bool { return d.Name == filepath.ToSlash(filepath.Clean(name)) })
		if i < 0 {
			return nil, fmt.Errorf("%w: %s", errUnknown, name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func runAll(ctx context.Context, root string, documents []*guides.Document, parallel int, update bool, errs io.Writer) error {
	started := time.Now()
	var mu sync.Mutex
	progress := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(errs, "%6.1fs  %s\n", time.Since(started).Seconds(), fmt.Sprintf(format, args...))
	}
	var shell string
	// Once for all documents, so that none waits for a compiler.
	for _, program := range []programs.Program{programs.KubectlSNO, programs.IngressHost, programs.ConsoleHost, programs.AuthHost, programs.Run} {
		var err error
		if shell, err = programs.Build(ctx, program, errs); err != nil {
			return err //nolint:wrapcheck // the error names the command
		}
	}
	runner := guides.Runner{Limit: limit, Progress: progress, Program: func(ctx context.Context, cluster guides.Cluster) *exec.Cmd {
		cmd := exec.CommandContext(ctx, shell, append([]string{"-shell", "-built", "-scenario", cluster.Scenario}, cluster.Flags...)...)
		cmd.Dir = root
		return cmd
	}}
	results := make([]guides.Result, len(documents))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, d := range documents {
		group.Go(func() error {
			var err error
			results[i], err = runner.Run(groupCtx, d)
			return err //nolint:wrapcheck // it names the document
		})
	}
	if err := group.Wait(); err != nil {
		return err //nolint:wrapcheck // it names the document
	}
	return report(root, results, update)
}

// report prints the failures and a table, and writes the documents that have changed.
func report(root string, results []guides.Result, update bool) error {
	failed := 0
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DOCUMENT\tRUN\tNOT RUN\tTIME\tRESULT")
	for _, r := range results {
		result := "ok"
		switch {
		case update && r.Updated != "":
			result = "updated"
			if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(r.Document)), []byte(r.Updated), 0o644); err != nil {
				return fmt.Errorf("update %s: %w", r.Document, err)
			}
		case len(r.Failures) > 0:
			result = "FAILED"
			failed++
			fmt.Printf("%s\n", strings.Join(r.Failures, "\n"))
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%.0f s\t%s\n", r.Document, r.Run, r.NotRun, r.Took.Seconds(), result)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	if failed > 0 {
		return fmt.Errorf("%w: %d of %d", errFailures, failed, len(results))
	}
	return nil
}
