// SPDX-License-Identifier: Apache-2.0

// Command sno-bench measures the figures of docs/benchmarks.md on embedded clusters and prints them as a table. See
// -help.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/solonode/sno/e2e/bench"
)

func main() { os.Exit(run()) }

func run() int {
	options := bench.Options{Progress: os.Stderr}
	flag.IntVar(&options.TopologyChanges, "changes", 50, "Number of topology changes.")
	flag.DurationVar(&options.IdleTime, "idle", 5*time.Minute, "How long writes on an idle cluster are counted.")
	flag.IntVar(&options.Nodes, "nodes", 2000, "Nodes of the large cluster.")
	flag.IntVar(&options.Pods, "pods", 20000, "Pods of the large cluster.")
	flag.DurationVar(&options.Settle, "settle", time.Minute, "How long the controller runs before its memory is read.")
	flag.BoolVar(&options.MakeTest, "make-test", false, "Time make test as well.")
	only := flag.String("only", "", fmt.Sprintf("Only the steps that match this regular expression, of %v.", bench.Steps()))
	document := flag.String("write", "", "Markdown document whose table to update, between its markers.")
	flag.Parse()
	if *only != "" {
		pattern, err := regexp.Compile(*only)
		if err != nil {
			fmt.Fprintln(os.Stderr, "sno-bench: -only:", err)
			return 2
		}
		options.Only = pattern
	}

	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rows, err := bench.Run(ctx, options)
	if printErr := bench.Print(os.Stdout, rows); printErr != nil {
		err = printErr
	}
	if err == nil && *document != "" {
		err = write(*document, rows, *only != "")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sno-bench:", err)
		return 2
	}
	for _, row := range rows {
		if !row.Held {
			fmt.Fprintf(os.Stderr, "sno-bench: out of bounds: %s: %s, want %s\n", row.What, row.Measured, row.Bound)
			return 1
		}
	}
	return 0
}

func write(path string, rows []bench.Row, partial bool) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	after, err := bench.Bench.Document(before, rows, bench.Machine(), partial)
	if err != nil {
		return err
	}
	return os.WriteFile(path, after, 0o644)
}
